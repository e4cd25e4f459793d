//! Rules for the name, upstream, members and settings of a repository.

use packhouse_identity::permissions::Permission;
use packhouse_runtime::Description;
use packhouse_store::{RepositoryId, RepositoryRow};
use serde_json::{Map, Value};
use url::Url;

use super::may_read;
use crate::error::ApiError;
use crate::fields::Field;
use crate::operations::Actor;
use packhouse_config::repository_settings;
use packhouse_wire::catalogue;
use packhouse_wire::path::is_repository_name;

pub(crate) fn name(field: &Field) -> Result<String, ApiError> {
    match field.as_ref().and_then(Value::as_str) {
        Some(name) if is_repository_name(name) => Ok(name.to_owned()),
        _ => Err(ApiError::from(&catalogue::INVALID_REPOSITORY_NAME)),
    }
}

/// Reads the upstream. A proxy must have one; other kinds cannot.
pub(crate) fn upstream(field: &Field, kind: &str) -> Result<Option<String>, ApiError> {
    let wrong = |sentence: &str| ApiError::with(&catalogue::INVALID_UPSTREAM, sentence);
    let given = field.as_ref().filter(|value| !value.is_null());
    let Some(value) = given else {
        return match kind {
            PROXY => Err(wrong(
                "A proxy repository requires an upstream: send `upstream`, for example `{\"url\": \
                 \"https://…\"}`.",
            )),
            _ => Ok(None),
        };
    };
    if kind != PROXY {
        return Err(wrong("Only a proxy repository can have an upstream."));
    }
    let url = match value {
        Value::Object(members) if members.len() == 1 => members.get("url").and_then(Value::as_str),
        _ => None,
    };
    let url = url.ok_or_else(|| wrong("`upstream` must be an object with only the field `url`."))?;
    address(url).map(Some).map_err(wrong)
}

fn address(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text)
        .map_err(|_| "The upstream's address must be a URL, for example `https://registry.example.com/`.")?;
    match () {
        () if !matches!(url.scheme(), "http" | "https") => {
            Err("The upstream's address must begin with http:// or https://.")
        }
        () if url.host().is_none() => Err("The upstream's address has no host."),
        () if !url.username().is_empty() || url.password().is_some() => {
            Err("The upstream's address must not contain a credential.")
        }
        () if url.query().is_some() || url.fragment().is_some() => {
            Err("The upstream's address must not have a query or a fragment.")
        }
        () => Ok(url.into()),
    }
}

/// Reads the members, without looking them up: a list without repetition, only for a group.
pub(crate) fn members(field: &Field, kind: &str) -> Result<Option<Vec<RepositoryId>>, ApiError> {
    let wrong = |sentence: &str| ApiError::with(&catalogue::INVALID_MEMBERS, sentence);
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
    if kind != GROUP {
        return Err(wrong("Only a group repository can have members."));
    }
    let items = value.as_array().ok_or_else(|| wrong("`members` must be a list of repository ids."))?;
    let mut ids = Vec::with_capacity(items.len());
    for item in items {
        let id = item.as_str().and_then(|text| text.parse::<RepositoryId>().ok());
        let id = id.ok_or_else(|| {
            wrong(
                "`members` lists a repository that does not exist; each item must be the id of a repository.",
            )
        })?;
        if ids.contains(&id) {
            return Err(wrong("`members` lists a repository twice."));
        }
        ids.push(id);
    }
    Ok(Some(ids))
}

/// Checks that an actor without manage-repositories may read the members that are added to a group.
/// A missing repository and an unreadable one have the same refusal: 403 `repo_access_denied`.
pub(super) async fn may_add_members(
    actor: &Actor,
    before: &[RepositoryId],
    after: &[RepositoryId],
) -> Result<(), ApiError> {
    if actor.permissions().holds(Permission::ManageRepositories) {
        return Ok(());
    }
    let added: Vec<RepositoryId> = after.iter().copied().filter(|id| !before.contains(id)).collect();
    let rows = actor.app.store.find_repositories(actor.organization(), &added).await?;
    let readable = rows.len() == added.len() && rows.iter().all(|row| may_read(actor, row));
    actor.judge(readable, &catalogue::REPO_ACCESS_DENIED)
}

/// Checks that the members exist, have this format, and are not groups.
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

/// Reads the settings, and `public` apart from them, because it is stored beside them.
pub(crate) fn settings(
    field: &Field,
    description: Option<&Description>,
) -> Result<(Map<String, Value>, Option<bool>), ApiError> {
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok((Map::new(), None)) };
    let mut settings = repository_settings::check(value, description)
        .map_err(|sentence| ApiError::with(&catalogue::INVALID_SETTINGS, &sentence))?;
    let public =
        settings.remove(repository_settings::PUBLIC).map(|value| value.as_bool().unwrap_or_default());
    Ok((settings, public))
}

/// Kinds of repository for which the API has rules of its own.
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
        fn a_name_cannot_escape_its_path_segment(name in "\\PC{0,70}") {
            if is_repository_name(&name) {
                prop_assert!(!name.contains(['/', '\\', '%', '\0']) && !name.contains(".."));
            }
        }
    }

    #[test]
    fn only_a_proxy_has_an_upstream() {
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
    fn only_a_group_has_members_without_repetition() {
        assert!(members(&Some(json!([])), "group").unwrap().unwrap().is_empty());
        assert!(members(&Some(json!(["1", "1"])), "group").is_err());
        assert!(members(&Some(json!(["x"])), "group").is_err());
        assert!(members(&Some(json!([1])), "group").is_err());
        assert!(members(&Some(json!(["1"])), "hosted").is_err());
    }
}
