//! What a repository may be: its name, upstream, members and settings.

use packhouse_runtime::Description;
use packhouse_store::{RepositoryId, RepositoryRow};
use serde_json::{Map, Value};
use url::Url;

use crate::error::ApiError;
use crate::fields::Field;
use crate::operations::Actor;
use packhouse_config::repository_settings;
use packhouse_wire::catalogue;
use packhouse_wire::path::is_repository_name;

/// A repository's name.
pub(crate) fn name(field: &Field) -> Result<String, ApiError> {
    match field.as_ref().and_then(Value::as_str) {
        Some(name) if is_repository_name(name) => Ok(name.to_owned()),
        _ => Err(ApiError::from(&catalogue::INVALID_REPOSITORY_NAME)),
    }
}

/// A proxy has an upstream, and nothing else has one.
pub(crate) fn upstream(field: &Field, kind: &str) -> Result<Option<String>, ApiError> {
    let wrong = |sentence: &str| ApiError::with(&catalogue::INVALID_UPSTREAM, sentence);
    let given = field.as_ref().filter(|value| !value.is_null());
    let Some(value) = given else {
        return match kind {
            PROXY => Err(wrong(
                "A proxy repository needs an upstream: give `upstream`, as `{\"url\": \"https://…\"}`.",
            )),
            _ => Ok(None),
        };
    };
    if kind != PROXY {
        return Err(wrong("Only a proxy repository has an upstream."));
    }
    let url = match value {
        Value::Object(members) if members.len() == 1 => members.get("url").and_then(Value::as_str),
        _ => None,
    };
    let url =
        url.ok_or_else(|| wrong("The field `upstream` must be an object with the field `url` alone."))?;
    address(url).map(Some).map_err(wrong)
}

fn address(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text)
        .map_err(|_| "The upstream's address is not one, as `https://registry.example.com/` is.")?;
    match () {
        () if !matches!(url.scheme(), "http" | "https") => {
            Err("The upstream's address is neither http nor https.")
        }
        () if url.host().is_none() => Err("The upstream's address has no host."),
        () if !url.username().is_empty() || url.password().is_some() => {
            Err("The upstream's address must not hold a credential.")
        }
        () if url.query().is_some() || url.fragment().is_some() => {
            Err("The upstream's address must not have a query or a fragment.")
        }
        () => Ok(url.into()),
    }
}

/// The members' ids, as far as the body alone shows: a list without repetition, for a group alone.
pub(crate) fn members(field: &Field, kind: &str) -> Result<Option<Vec<RepositoryId>>, ApiError> {
    let wrong = |sentence: &str| ApiError::with(&catalogue::INVALID_MEMBERS, sentence);
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
    if kind != GROUP {
        return Err(wrong("Only a group repository has members."));
    }
    let items = value.as_array().ok_or_else(|| wrong("`members` is a list of repository ids."))?;
    let mut ids = Vec::with_capacity(items.len());
    for item in items {
        let id = item.as_str().and_then(|text| text.parse::<RepositoryId>().ok());
        let id = id.ok_or_else(|| wrong("A member is not there: each is the id of a repository."))?;
        if ids.contains(&id) {
            return Err(wrong("A member stands twice."));
        }
        ids.push(id);
    }
    Ok(Some(ids))
}

/// What only the store shows of members: each is there, of this format, and no group.
pub(super) async fn members_exist(actor: &Actor, ids: &[RepositoryId], format: &str) -> Result<(), ApiError> {
    if ids.is_empty() {
        return Ok(());
    }
    let rows = actor.app.store.find_repositories(actor.organization(), ids).await?;
    let fits = |row: &RepositoryRow| row.format == format && row.kind != GROUP;
    if rows.len() == ids.len() && rows.iter().all(fits) {
        return Ok(());
    }
    let sentence = "A member must be a hosted or proxy repository of the group's format.";
    Err(ApiError::with(&catalogue::INVALID_MEMBERS, sentence))
}

/// Settings that are to be set, with `public` taken out: it is kept beside them.
pub(crate) fn settings(
    field: &Field,
    description: Option<&Description>,
) -> Result<(Map<String, Value>, Option<bool>), ApiError> {
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok((Map::new(), None)) };
    let mut wanted = repository_settings::check(value, description)
        .map_err(|sentence| ApiError::with(&catalogue::INVALID_SETTINGS, &sentence))?;
    let public = wanted.remove(repository_settings::PUBLIC).map(|value| value.as_bool().unwrap_or_default());
    Ok((wanted, public))
}

/// The kinds on the wire to which a rule of the API's belongs.
pub const PROXY: &str = "proxy";
pub(super) const GROUP: &str = "group";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_words_joined_by_single_marks() {
        for right in ["a", "0", "a-b", "a.b_c-d", "maven2", &"a".repeat(64)] {
            assert!(is_repository_name(right), "{right}");
        }
        for wrong in ["", "-a", "a-", "a--b", "a._b", "A", "a b", "a/b", "ä", "..", &"a".repeat(65)] {
            assert!(!is_repository_name(wrong), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_name_can_leave_its_place_in_a_path(name in "\\PC{0,70}") {
            if is_repository_name(&name) {
                prop_assert!(!name.contains(['/', '\\', '%', '\0']) && !name.contains(".."));
            }
        }
    }

    #[test]
    fn a_proxy_alone_has_an_upstream() {
        let given = |value: Value| Some(json!({"url": value}));
        assert!(upstream(&given(json!("https://repo.example/maven2")), "proxy").is_ok());
        assert!(upstream(&None, "hosted").unwrap().is_none());
        assert!(upstream(&None, "proxy").is_err());
        assert!(upstream(&given(json!("https://repo.example/")), "hosted").is_err());
        for wrong in ["ftp://x/", "x", "https://u:p@x/", "https://x/?q", "file:///etc/passwd", "https://"] {
            assert!(upstream(&given(json!(wrong)), "proxy").is_err(), "{wrong}");
        }
        assert!(upstream(&Some(json!({"url": "https://x/", "token": "y"})), "proxy").is_err());
    }

    #[test]
    fn a_group_alone_has_members_each_once() {
        assert!(members(&Some(json!([])), "group").unwrap().unwrap().is_empty());
        assert!(members(&Some(json!(["1", "1"])), "group").is_err());
        assert!(members(&Some(json!(["x"])), "group").is_err());
        assert!(members(&Some(json!([1])), "group").is_err());
        assert!(members(&Some(json!(["1"])), "hosted").is_err());
    }
}
