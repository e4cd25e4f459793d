//! Bodies that create and change policies and their exceptions.

use packhouse_store::RuleMode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given, name};
use crate::operations::policies::{ExceptionRequest, RuleChangeRequest, RuleRequest};
use crate::retention::bodies::{ReachBody, reach};

/// Maximum number of patterns in a list.
const PATTERNS: usize = 100;
/// Maximum length of a pattern in characters.
const PATTERN: usize = 512;
/// Maximum size of the settings in bytes.
const SETTINGS: usize = 64 << 10;
/// Maximum length of a reason in characters.
const REASON: usize = 1_000;
/// Maximum duration of an exception in ms. A longer one must be renewed.
const LONGEST: i64 = 366 * 24 * 60 * 60 * 1000;

/// A new policy.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateRule {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Name of a component beside the program, or digest of an installed one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    component: Field,
    /// Settings in the form that the component describes; empty by default.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
    /// Ids of repositories, or `*` for all present and future ones. A group is judged by its
    /// members.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = ReachBody, required)]
    repositories: Field,
    /// Patterns of package names, one of which must match; `*` matches any text.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    packages: Field,
}

/// Changes to a policy.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeRule {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    component: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<ReachBody>)]
    repositories: Field,
    /// Patterns of package names; null for all.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    packages: Field,
    /// `paused`, `warn` or `enforced`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    mode: Field,
}

/// A new exception.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateException {
    /// Id of the repository; all repositories by default.
    #[serde(default)]
    repository: Option<String>,
    /// Pattern of package names.
    #[serde(default)]
    #[schema(required)]
    package: String,
    /// Pattern of versions; all versions by default.
    #[serde(default)]
    version: Option<String>,
    /// Reason, for people: 1 to 1,000 characters.
    #[serde(default)]
    #[schema(required)]
    reason: String,
    /// Time in ms since 1970: in the future, within 366 days.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = i64, required)]
    until: Field,
}

impl CreateRule {
    pub(crate) fn request(self) -> Result<RuleRequest, ApiError> {
        let missing = || ApiError::invalid("`repositories` is required: a list of ids, or \"*\" for all.");
        Ok(RuleRequest {
            name: name(&self.name)?,
            component: component(self.component.as_ref())?,
            settings: self
                .settings
                .as_ref()
                .map_or_else(|| Ok(Value::Object(Default::default())), settings)?,
            repositories: reach(self.repositories.as_ref().ok_or_else(missing)?)?,
            packages: self.packages.as_ref().map_or(Ok(None), patterns)?,
        })
    }
}

impl ChangeRule {
    pub(crate) fn request(self) -> Result<RuleChangeRequest, ApiError> {
        let mode = |value: &Value| {
            let mode = value.as_str().and_then(RuleMode::of);
            mode.ok_or_else(|| ApiError::invalid("`mode` must be `paused`, `warn` or `enforced`."))
        };
        Ok(RuleChangeRequest {
            name: self.name.is_some().then(|| name(&self.name)).transpose()?,
            component: self.component.is_some().then(|| component(self.component.as_ref())).transpose()?,
            settings: self.settings.as_ref().map(settings).transpose()?,
            repositories: self.repositories.as_ref().map(reach).transpose()?,
            packages: self.packages.as_ref().map(patterns).transpose()?,
            mode: self.mode.as_ref().map(mode).transpose()?,
        })
    }
}

impl CreateException {
    pub(crate) fn request(self, now: i64) -> Result<ExceptionRequest, ApiError> {
        let until = fields::stated_expiry(&self.until, now)?;
        let until = until.filter(|at| *at <= now.saturating_add(LONGEST));
        let until = until.ok_or_else(|| ApiError::invalid("`until` must be within 366 days."))?;
        let is_pattern = |text: &str| (1..=PATTERN).contains(&text.chars().count());
        let version = self.version.unwrap_or_else(|| "*".to_owned());
        if !is_pattern(&self.package) || !is_pattern(&version) {
            let problem = format!(
                "`package` and `version` must be patterns of 1 to {PATTERN} characters, in which * matches \
                 any text."
            );
            return Err(ApiError::invalid(&problem));
        }
        let reason = self.reason.trim();
        if !(1..=REASON).contains(&reason.chars().count()) || reason.chars().any(char::is_control) {
            return Err(ApiError::invalid(&format!(
                "`reason` must have 1 to {REASON} characters on one line."
            )));
        }
        let (reason, package) = (reason.to_owned(), self.package);
        Ok(ExceptionRequest { repository: self.repository, package, version, reason, until })
    }
}

fn component(value: Option<&Value>) -> Result<String, ApiError> {
    let text = value.and_then(Value::as_str).filter(|text| (1..=80).contains(&text.len()));
    let wrong =
        || ApiError::invalid("`component` must be the name of a policy, or the digest of an installed one.");
    text.map(str::to_owned).ok_or_else(wrong)
}

fn settings(value: &Value) -> Result<Value, ApiError> {
    let wrong = || ApiError::invalid(&format!("`settings` must be an object of at most {SETTINGS} bytes."));
    let is_good = value.is_object() && value.to_string().len() <= SETTINGS;
    is_good.then(|| value.clone()).ok_or_else(wrong)
}

fn patterns(value: &Value) -> Result<Option<Vec<String>>, ApiError> {
    if value.is_null() {
        return Ok(None);
    }
    let problem = format!(
        "`packages` must be a list of 1 to {PATTERNS} patterns of 1 to {PATTERN} characters, in which * \
         matches any text."
    );
    let wrong = || ApiError::invalid(&problem);
    let list = value.as_array().filter(|list| (1..=PATTERNS).contains(&list.len())).ok_or_else(wrong)?;
    let pattern = |one: &Value| {
        let text = one.as_str().filter(|text| (1..=PATTERN).contains(&text.chars().count()));
        text.map(str::to_owned).ok_or_else(wrong)
    };
    list.iter().map(pattern).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let good = json!({"name": "a", "component": "licences", "settings": {"allow": ["MIT"]}, "repositories": "*", "packages": ["a*"]});
        let made = |path: &str, value: Value| {
            let mut body = good.clone();
            body[path] = value;
            let body: CreateRule = serde_json::from_value(body).unwrap();
            body.request().map_err(|error| error.message().to_owned())
        };
        assert!(made("packages", Value::Null).unwrap().packages.is_none());
        for (path, value) in [
            ("component", json!("")),
            ("settings", json!([])),
            ("settings", json!({"a": "x".repeat(SETTINGS)})),
            ("repositories", json!("all")),
            ("packages", json!([])),
            ("packages", json!([1])),
        ] {
            assert!(made(path, value).unwrap_err().contains(path), "{path}");
        }
    }

    #[test]
    fn an_exception_has_a_reason_and_an_end() {
        let made = |change: Value| {
            let mut body = json!({"package": "a", "reason": "b", "until": 2_000});
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let body: CreateException = serde_json::from_value(body).unwrap();
            body.request(1_000).map_err(|error| error.message().to_owned())
        };
        assert_eq!(made(json!({})).unwrap().version, "*");
        for change in [
            json!({"until": 1_000}),
            json!({"until": null}),
            json!({"until": 2_000 + LONGEST}),
            json!({"reason": " "}),
            json!({"reason": "a\nb"}),
            json!({"package": ""}),
            json!({"version": ""}),
        ] {
            assert!(made(change.clone()).is_err(), "{change}");
        }
    }
}
