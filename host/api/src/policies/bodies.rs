//! The bodies that make and change policies and their exceptions.

use packhouse_store::RuleMode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{self, Field, given, name};
use crate::operations::policies::{ExceptionRequest, RuleChangeRequest, RuleRequest};
use crate::retention::bodies::{ReachBody, reach};

/// Patterns of a list.
const PATTERNS: usize = 100;
/// Characters of a pattern.
const PATTERN: usize = 512;
/// Bytes of settings.
const SETTINGS: usize = 64 << 10;
/// Characters of a reason.
const REASON: usize = 1_000;
/// How long an exception lasts at most, in ms: who needs it longer says so again.
const LONGEST: i64 = 366 * 24 * 60 * 60 * 1000;

/// A policy to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateRule {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// The name of a component beside the program, or the digest of one that was installed.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    component: Field,
    /// As the component describes them; nothing is set without.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Object>)]
    settings: Field,
    /// Ids of repositories, or `*` for all there are and will be. A group is judged by its members.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = ReachBody, required)]
    repositories: Field,
    /// Patterns of packages, one of which fits; `*` stands for any text.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    packages: Field,
}

/// What is to be another of a policy.
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
    /// Null: all.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    packages: Field,
    /// `paused`, `warn` or `enforced`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    mode: Field,
}

/// An exception to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateException {
    /// The repository's id; everywhere without.
    #[serde(default)]
    repository: Option<String>,
    /// A pattern of packages.
    #[serde(default)]
    #[schema(required)]
    package: String,
    /// A pattern of versions; all without.
    #[serde(default)]
    version: Option<String>,
    /// Why, for people: 1 to 1,000 characters.
    #[serde(default)]
    #[schema(required)]
    reason: String,
    /// In ms since 1970: in the future, within 366 days.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = i64, required)]
    until: Field,
}

impl CreateRule {
    pub(crate) fn request(self) -> Result<RuleRequest, ApiError> {
        let missing = || ApiError::invalid("`repositories` says where the policy holds: ids, or \"*\".");
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
            mode.ok_or_else(|| ApiError::invalid("`mode` is `paused`, `warn` or `enforced`."))
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
        let until = until.ok_or_else(|| ApiError::invalid("`until` is within 366 days."))?;
        let is_pattern = |text: &str| (1..=PATTERN).contains(&text.chars().count());
        let version = self.version.unwrap_or_else(|| "*".to_owned());
        if !is_pattern(&self.package) || !is_pattern(&version) {
            let told = format!(
                "`package` and `version` are patterns of 1 to {PATTERN} characters, in which * stands for any text."
            );
            return Err(ApiError::invalid(&told));
        }
        let reason = self.reason.trim();
        if !(1..=REASON).contains(&reason.chars().count()) || reason.chars().any(char::is_control) {
            return Err(ApiError::invalid(&format!(
                "`reason` says why, in 1 to {REASON} characters on one line."
            )));
        }
        let (reason, package) = (reason.to_owned(), self.package);
        Ok(ExceptionRequest { repository: self.repository, package, version, reason, until })
    }
}

fn component(value: Option<&Value>) -> Result<String, ApiError> {
    let text = value.and_then(Value::as_str).filter(|text| (1..=80).contains(&text.len()));
    let wrong =
        || ApiError::invalid("`component` is the name of a policy, or the digest of one that was installed.");
    text.map(str::to_owned).ok_or_else(wrong)
}

fn settings(value: &Value) -> Result<Value, ApiError> {
    let wrong = || ApiError::invalid(&format!("`settings` is an object of at most {SETTINGS} bytes."));
    let is_good = value.is_object() && value.to_string().len() <= SETTINGS;
    is_good.then(|| value.clone()).ok_or_else(wrong)
}

fn patterns(value: &Value) -> Result<Option<Vec<String>>, ApiError> {
    if value.is_null() {
        return Ok(None);
    }
    let told = format!(
        "`packages` is a list of 1 to {PATTERNS} patterns of 1 to {PATTERN} characters, in which * stands for any text."
    );
    let wrong = || ApiError::invalid(&told);
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
