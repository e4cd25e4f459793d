//! What a new token may be, as far as its body shows, in the order of the specification's table of codes.

use packhouse_store::{MemberRow, NewToken, RepositoryId, Scope};
use serde_json::Value;

use super::create::Create;
use crate::error::ApiError;
use crate::fields::{self, Field};
use packhouse_identity::access::GENERIC;
use packhouse_wire::catalogue;

/// Formats of tokens, as the specification lists them. A format besides those of the specification describes its own.
const FORMATS: &[&str] = &[GENERIC, "npm"];
/// The longest life of a service key: 90 days in ms.
const SERVICE_KEY_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// What a service key belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Backing {
    /// The organization.
    Organization,
    /// One repository, by what was written as its id.
    Repository(String),
}

/// A body that is right.
#[derive(Debug)]
pub struct Judged {
    /// What the token is called.
    pub name: String,
    pub(super) scope: Scope,
    pub(super) format: String,
    /// As they were written: whether they are there is judged later.
    pub(super) repositories: Vec<String>,
    pub(super) expires_at: Option<i64>,
    pub(super) backing: Option<Backing>,
}

impl Judged {
    /// The token to be made: the member's own, or a key that the member makes.
    pub fn token(
        self,
        secret_sha256: [u8; 32],
        member: &MemberRow,
        repositories: Vec<RepositoryId>,
    ) -> NewToken {
        let backing_repository = match &self.backing {
            Some(Backing::Repository(_)) => repositories.first().copied(),
            _ => None,
        };
        NewToken {
            secret_sha256,
            name: self.name,
            scope: self.scope,
            format: self.format,
            owner: self.backing.is_none().then_some(member.id),
            created_by: member.email.clone(),
            backing_repository,
            backing: self.backing.map(|backing| match backing {
                Backing::Organization => "org".to_owned(),
                Backing::Repository(_) => "repo".to_owned(),
            }),
            repositories,
            expires_at: self.expires_at,
        }
    }
}

/// Whether there are tokens of this format whatever plugins are loaded.
pub fn is_always_there(format: &str) -> bool {
    FORMATS.contains(&format)
}

/// Judges a token that is wanted elsewhere than in a call, as the call would. `own` are the formats whose descriptions say that
/// there are tokens of theirs; `now` in ms since 1970.
pub fn wanted(body: Value, own: &[&str], now: i64) -> Result<Judged, ApiError> {
    let wanted = serde_json::from_value(body).map_err(|error| ApiError::Internal(error.into()))?;
    self::body(&wanted, own, now)
}

/// Judges the body. `own` are the formats whose descriptions say that there are tokens of theirs; `now` in ms since 1970.
pub(super) fn body(wanted: &Create, own: &[&str], now: i64) -> Result<Judged, ApiError> {
    let name = fields::name(&wanted.name)?;
    let scope = scope(&wanted.scope)?;
    let format = format(&wanted.format, own)?;
    let repositories = repositories(&wanted.repositories)?;
    let expires_at = fields::stated_expiry(&wanted.expires_at, now)?;
    let backing = backing(&wanted.backing)?;
    if let Some(backing) = &backing {
        service_key(backing, &format, &repositories, expires_at, now)?;
    }
    Ok(Judged { name, scope, format, repositories, expires_at, backing })
}

fn scope(field: &Field) -> Result<Scope, ApiError> {
    let wrong = || ApiError::from(&catalogue::INVALID_SCOPE);
    let items =
        field.as_ref().and_then(Value::as_array).filter(|items| !items.is_empty()).ok_or_else(wrong)?;
    let mut scope = Scope { read: false, write: false };
    for item in items {
        match item.as_str() {
            Some("read") => scope.read = true,
            Some("write") => scope.write = true,
            _ => return Err(wrong()),
        }
    }
    Ok(scope)
}

fn format(field: &Field, own: &[&str]) -> Result<String, ApiError> {
    let known = |format: &&str| is_always_there(format) || own.contains(format);
    let format = field.as_ref().and_then(Value::as_str).filter(known);
    format.map(str::to_owned).ok_or(ApiError::from(&catalogue::INVALID_TOKEN_FORMAT))
}

/// At least one id, each once.
fn repositories(field: &Field) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::from(&catalogue::MISSING_REPO_IDS);
    let items =
        field.as_ref().and_then(Value::as_array).filter(|items| !items.is_empty()).ok_or_else(wrong)?;
    let mut ids = Vec::with_capacity(items.len());
    for item in items {
        let id = item.as_str().ok_or_else(wrong)?.to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn backing(field: &Field) -> Result<Option<Backing>, ApiError> {
    let Some(value) = field.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
    let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    if let Some(unknown) = names.find(|name| !matches!(*name, "kind" | "id")) {
        return Err(ApiError::invalid(&format!("`backing` has no field `{unknown}`.")));
    }
    let id = value.get("id").filter(|id| !id.is_null());
    match (value.get("kind").and_then(Value::as_str), id.map(Value::as_str)) {
        (Some("org"), _) => Ok(Some(Backing::Organization)),
        (Some("repo"), Some(Some(id))) if !id.trim().is_empty() => {
            Ok(Some(Backing::Repository(id.to_owned())))
        }
        (Some("repo"), _) => Err(ApiError::from(&catalogue::INVALID_BACKING_ID)),
        _ => Err(ApiError::from(&catalogue::INVALID_BACKING_KIND)),
    }
}

fn service_key(
    backing: &Backing,
    format: &str,
    repositories: &[String],
    expires_at: Option<i64>,
    now: i64,
) -> Result<(), ApiError> {
    service_key_expiry(expires_at, now)?;
    if format != GENERIC {
        return Err(ApiError::from(&catalogue::INVALID_SERVICE_KEY_FORMAT));
    }
    match backing {
        Backing::Repository(id) if repositories != [id.as_str()] => {
            Err(ApiError::from(&catalogue::REPO_BACKING_SCOPE_MISMATCH))
        }
        _ => Ok(()),
    }
}

/// A service key expires, at most 90 days from `now`.
pub(super) fn service_key_expiry(expires_at: Option<i64>, now: i64) -> Result<(), ApiError> {
    match expires_at {
        Some(at) if at <= now.saturating_add(SERVICE_KEY_MS) => Ok(()),
        _ => Err(ApiError::from(&catalogue::SERVICE_KEY_MUST_EXPIRE)),
    }
}

/// The ids that can be ids at all.
pub(super) fn parsed(ids: &[String]) -> Option<Vec<RepositoryId>> {
    ids.iter().map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_000_000;

    fn code(change: &[(&str, Value)]) -> &'static str {
        let mut body = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": ["1"],
            "expires_at": null});
        for (name, value) in change {
            match value {
                Value::String(text) if text == "absent" => body.as_object_mut().unwrap().remove(*name),
                value => body.as_object_mut().unwrap().insert((*name).to_owned(), value.clone()),
            };
        }
        let wanted: Create = serde_json::from_value(body).unwrap();
        match super::body(&wanted, &["fifth"], NOW) {
            Ok(_) => "right",
            Err(ApiError::Refused { code, .. }) => code.code,
            Err(ApiError::Internal(_)) => "internal",
        }
    }

    /// Faults in the order of judgement, each with its code: of any two the first is told.
    fn faults() -> Vec<(&'static str, Value, &'static str)> {
        vec![
            ("name", json!(""), "invalid_name"),
            ("scope", json!(["admin"]), "invalid_scope"),
            ("format", json!("maven"), "invalid_token_format"),
            ("repositories", json!([]), "missing_repo_ids"),
            ("expires_at", json!("absent"), "missing_expires_at"),
            ("backing", json!({"kind": "team"}), "invalid_backing_kind"),
        ]
    }

    #[test]
    fn each_fault_has_its_code_and_of_two_the_first_is_told() {
        assert_eq!(code(&[]), "right");
        assert_eq!(code(&[("format", json!("fifth"))]), "right");
        let faults = faults();
        for (at, (name, value, expected)) in faults.iter().enumerate() {
            assert_eq!(code(&[(*name, value.clone())]), *expected);
            for (other, wrong, _) in &faults[at + 1..] {
                assert_eq!(
                    code(&[(*name, value.clone()), (*other, wrong.clone())]),
                    *expected,
                    "with {other}"
                );
            }
        }
    }

    #[test]
    fn a_wrong_type_is_the_code_of_its_field() {
        for (name, value, expected) in [
            ("name", json!(1), "invalid_name"),
            ("scope", json!("read"), "invalid_scope"),
            ("scope", json!(["read", 1]), "invalid_scope"),
            ("format", json!(null), "invalid_token_format"),
            ("repositories", json!("1"), "missing_repo_ids"),
            ("repositories", json!([1]), "missing_repo_ids"),
            ("expires_at", json!("soon"), "invalid_expires_at"),
            ("expires_at", json!(1), "expires_at_in_past"),
            ("backing", json!("org"), "invalid_backing_kind"),
            ("backing", json!({"kind": "repo"}), "invalid_backing_id"),
            ("backing", json!({"kind": "repo", "id": 1}), "invalid_backing_id"),
            ("backing", json!({"kind": "org", "owner": "me"}), "invalid_request"),
        ] {
            assert_eq!(code(&[(name, value.clone())]), expected, "{name} {value}");
        }
    }

    #[test]
    fn a_service_key_is_generic_ends_and_keeps_to_its_repository() {
        let org = ("backing", json!({"kind": "org"}));
        let repo = ("backing", json!({"kind": "repo", "id": "1"}));
        let soon = ("expires_at", json!(NOW + SERVICE_KEY_MS));
        let late = ("expires_at", json!(NOW + SERVICE_KEY_MS + 1));
        assert_eq!(code(std::slice::from_ref(&org)), "service_key_must_expire");
        assert_eq!(code(&[org.clone(), late]), "service_key_must_expire");
        assert_eq!(code(&[org.clone(), soon.clone()]), "right");
        assert_eq!(code(&[org, soon.clone(), ("format", json!("npm"))]), "invalid_service_key_format");
        assert_eq!(code(&[repo.clone(), soon.clone()]), "right");
        let two = ("repositories", json!(["1", "2"]));
        assert_eq!(code(&[repo, soon, two]), "repo_backing_scope_mismatch");
    }
}
