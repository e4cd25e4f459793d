//! Bodies that create and change retention policies.

use packhouse_runtime::NamePatterns;
use packhouse_store::RepositoryId;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{Field, given, name};
use crate::operations::retention::{Conditions, Keep, Matching, PolicyRequest, Reach, Rule};

/// Maximum number of patterns in a list.
const PATTERNS: usize = 100;
/// Maximum length of a pattern in characters.
const PATTERN: usize = 512;
/// Maximum number of days in a condition: a hundred years.
const DAYS: u32 = 36_500;
/// Maximum number of versions that one run may delete.
const DELETES: u64 = 1_000_000;
/// Maximum number of newest versions to keep.
const NEWEST: u32 = 100_000;
/// Maximum number of listed repositories.
const REPOSITORIES: usize = 1_000;

/// Ids of repositories, or `*` for all.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only the OpenAPI description uses it")]
pub(crate) enum ReachBody {
    /// `*`.
    All(String),
    /// Ids.
    Only(Vec<String>),
}

/// Versions to which a policy applies; all given conditions must match.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only the OpenAPI description uses it")]
pub(crate) struct MatchBody {
    /// Patterns of package names, one of which must match; `*` matches any text.
    packages: Option<Vec<String>>,
    /// Patterns of versions, one of which must match.
    versions: Option<Vec<String>>,
    /// True for versions with a tag, false for versions without one; for formats with tags.
    tagged: Option<bool>,
    /// True for pre-releases, false for other versions, by the format's rules.
    prerelease: Option<bool>,
}

/// Versions to delete; all given conditions must hold. At least one is required.
#[derive(Deserialize, ToSchema)]
#[allow(dead_code, reason = "only the OpenAPI description uses it")]
pub(crate) struct ConditionsBody {
    /// Published at least so many days ago; 0 for any time.
    published_before_days: Option<u32>,
    /// Not downloaded for so many days, or never downloaded and published so many days ago; 0 for
    /// any time.
    not_downloaded_days: Option<u32>,
}

/// Versions to keep in any case.
#[derive(Deserialize, ToSchema)]
#[allow(dead_code, reason = "only the OpenAPI description uses it")]
pub(crate) struct KeepBody {
    /// Number of the newest versions to keep of each package.
    newest: Option<u32>,
    /// Patterns of versions to keep.
    versions: Option<Vec<String>>,
}

/// A new policy.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatePolicy {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Ids of hosted repositories, or `*` for all present and future ones.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = ReachBody, required)]
    repositories: Field,
    #[serde(default, rename = "match", deserialize_with = "given")]
    #[schema(value_type = Option<MatchBody>)]
    matching: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = ConditionsBody, required)]
    delete: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<KeepBody>)]
    keep: Field,
    /// Maximum number of versions that one run deletes: 1 to 1,000,000.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = u64, required)]
    max_deletes: Field,
}

/// Changes to a policy.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangePolicy {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<ReachBody>)]
    repositories: Field,
    #[serde(default, rename = "match", deserialize_with = "given")]
    #[schema(value_type = Option<MatchBody>)]
    matching: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<ConditionsBody>)]
    delete: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<KeepBody>)]
    keep: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    max_deletes: Field,
    /// `paused` or `enforced`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    mode: Field,
}

impl CreatePolicy {
    pub(crate) fn request(self) -> Result<(String, Rule), ApiError> {
        let name = name(&self.name)?;
        let missing = |field: &str| ApiError::invalid(&format!("`{field}` is missing."));
        let rule = Rule {
            repositories: reach(self.repositories.as_ref().ok_or_else(|| missing("repositories"))?)?,
            matching: self.matching.as_ref().map(matching).transpose()?.unwrap_or_default(),
            delete: conditions(self.delete.as_ref().ok_or_else(|| missing("delete"))?)?,
            keep: self.keep.as_ref().map(keep).transpose()?.unwrap_or_default(),
            max_deletes: max_deletes(self.max_deletes.as_ref().ok_or_else(|| missing("max_deletes"))?)?,
        };
        Ok((name, rule))
    }
}

impl ChangePolicy {
    pub(crate) fn request(self) -> Result<PolicyRequest, ApiError> {
        Ok(PolicyRequest {
            name: self.name.is_some().then(|| name(&self.name)).transpose()?,
            repositories: self.repositories.as_ref().map(reach).transpose()?,
            matching: self.matching.as_ref().map(matching).transpose()?,
            delete: self.delete.as_ref().map(conditions).transpose()?,
            keep: self.keep.as_ref().map(keep).transpose()?,
            max_deletes: self.max_deletes.as_ref().map(max_deletes).transpose()?,
            enforced: match self.mode.as_ref().map(Value::as_str) {
                None => None,
                Some(Some("paused")) => Some(false),
                Some(Some("enforced")) => Some(true),
                Some(_) => return Err(ApiError::invalid("`mode` must be `paused` or `enforced`.")),
            },
        })
    }
}

pub(crate) fn reach(value: &Value) -> Result<Reach, ApiError> {
    let wrong = || ApiError::invalid("`repositories` must be a list of ids, or \"*\".");
    if value == "*" {
        return Ok(Reach::All);
    }
    let ids = value.as_array().filter(|ids| (1..=REPOSITORIES).contains(&ids.len())).ok_or_else(wrong)?;
    // A malformed id matches nothing.
    let unknown =
        || ApiError::invalid("`repositories` lists a repository that does not exist, or lists one twice.");
    let id = |id: &Value| id.as_str().ok_or_else(wrong)?.parse::<RepositoryId>().map_err(|_| unknown());
    let mut ids: Vec<RepositoryId> = ids.iter().map(id).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    if ids.windows(2).any(|two| matches!(two, [one, other] if one == other)) {
        return Err(unknown());
    }
    Ok(Reach::Only(ids))
}

/// Object in the body that has only known fields.
struct Object<'a> {
    name: &'static str,
    fields: &'a serde_json::Map<String, Value>,
}

impl<'a> Object<'a> {
    fn of(value: &'a Value, name: &'static str, known: &[&str]) -> Result<Object<'a>, ApiError> {
        let wrong = || {
            ApiError::invalid(&format!(
                "`{name}` must be an object with only the fields {}.",
                known.join(", ")
            ))
        };
        let fields = value.as_object().ok_or_else(wrong)?;
        if fields.keys().any(|key| !known.contains(&key.as_str())) {
            return Err(wrong());
        }
        Ok(Object { name, fields })
    }

    fn field(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn patterns(&self, key: &str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(value) = self.field(key) else { return Ok(None) };
        let text = format!(
            "`{}.{key}` must be a list of at most {PATTERNS} patterns of 1 to {PATTERN} characters, in \
             which * matches any text.",
            self.name
        );
        let wrong = || ApiError::invalid(&text);
        let list = value.as_array().filter(|list| (1..=PATTERNS).contains(&list.len())).ok_or_else(wrong)?;
        let pattern = |pattern: &Value| {
            let pattern = pattern.as_str().filter(|text| (1..=PATTERN).contains(&text.chars().count()));
            pattern.map(str::to_owned).ok_or_else(wrong)
        };
        list.iter().map(pattern).collect::<Result<_, _>>().map(Some)
    }

    fn number(&self, key: &str, most: u32) -> Result<Option<u32>, ApiError> {
        let Some(value) = self.field(key) else { return Ok(None) };
        let number =
            value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= most);
        let wrong =
            || ApiError::invalid(&format!("`{}.{key}` must be an integer from 0 to {most}.", self.name));
        number.map(Some).ok_or_else(wrong)
    }

    fn truth(&self, key: &str) -> Result<Option<bool>, ApiError> {
        let Some(value) = self.field(key) else { return Ok(None) };
        let wrong = || ApiError::invalid(&format!("`{}.{key}` must be true or false.", self.name));
        value.as_bool().map(Some).ok_or_else(wrong)
    }
}

fn matching(value: &Value) -> Result<Matching, ApiError> {
    let object = Object::of(value, "match", &["packages", "versions", "tagged", "prerelease"])?;
    Ok(Matching {
        packages: object.patterns("packages")?.map(NamePatterns::from),
        versions: object.patterns("versions")?,
        tagged: object.truth("tagged")?,
        prerelease: object.truth("prerelease")?,
    })
}

fn conditions(value: &Value) -> Result<Conditions, ApiError> {
    let object = Object::of(value, "delete", &["published_before_days", "not_downloaded_days"])?;
    let conditions = Conditions {
        published_before_days: object.number("published_before_days", DAYS)?,
        not_downloaded_days: object.number("not_downloaded_days", DAYS)?,
    };
    if conditions == Conditions::default() {
        return Err(ApiError::invalid(
            "`delete` must have at least one condition: `published_before_days` or `not_downloaded_days`.",
        ));
    }
    Ok(conditions)
}

fn keep(value: &Value) -> Result<Keep, ApiError> {
    let object = Object::of(value, "keep", &["newest", "versions"])?;
    Ok(Keep { newest: object.number("newest", NEWEST)?, versions: object.patterns("versions")? })
}

fn max_deletes(value: &Value) -> Result<u64, ApiError> {
    let number = value.as_u64().filter(|number| (1..=DELETES).contains(number));
    number.ok_or_else(|| ApiError::invalid(&format!("`max_deletes` must be an integer from 1 to {DELETES}.")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(change: impl FnOnce(&mut Value)) -> Result<(String, Rule), String> {
        let mut body = json!({"name": "old", "repositories": "*", "match": {"packages": ["a*"]},
            "delete": {"published_before_days": 30}, "keep": {"newest": 3}, "max_deletes": 10});
        change(&mut body);
        let body: CreatePolicy = serde_json::from_value(body).map_err(|error| error.to_string())?;
        body.request().map_err(|error| error.message().to_owned())
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(made(|_| {}).is_ok());
        let message_of =
            |path: &str, value: Value| made(|body| *body.pointer_mut(path).unwrap() = value).unwrap_err();
        for (path, value, named) in [
            ("/repositories", json!("all"), "`repositories`"),
            ("/repositories", json!([]), "`repositories`"),
            ("/repositories", json!(["1", "1"]), "twice"),
            ("/repositories", json!([1]), "`repositories`"),
            ("/match", json!({"tags": []}), "`match`"),
            ("/match", json!([]), "`match`"),
            ("/match/packages", json!([""]), "`match.packages`"),
            ("/match/packages", json!("a"), "`match.packages`"),
            ("/delete", json!({}), "`delete`"),
            ("/delete", json!({"published_before_days": null}), "`delete`"),
            ("/delete/published_before_days", json!(-1), "`delete.published_before_days`"),
            ("/delete/published_before_days", json!(1.5), "`delete.published_before_days`"),
            ("/keep/newest", json!("3"), "`keep.newest`"),
            ("/max_deletes", json!(0), "`max_deletes`"),
            ("/max_deletes", json!(null), "`max_deletes`"),
        ] {
            let message = message_of(path, value.clone());
            assert!(message.contains(named), "{path} {value}: {message}");
        }
        for field in ["name", "repositories", "delete", "max_deletes"] {
            assert!(made(|body| drop(body.as_object_mut().unwrap().remove(field))).is_err(), "{field}");
        }
        for field in ["match", "keep"] {
            assert!(made(|body| drop(body.as_object_mut().unwrap().remove(field))).is_ok(), "{field}");
        }
    }
}
