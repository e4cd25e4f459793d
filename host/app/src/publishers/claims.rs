//! Rules of trusted publishers. For each provider of build services, they define which ID tokens
//! match a publisher.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::refusal::IdTokenRefusal;

/// Maximum length of a claim's value in a rule, in characters.
const MAX_VALUE: usize = 512;
/// Maximum number of claims in a rule for `oidc`.
const MAX_CLAIMS: usize = 20;
/// Claims that differ in every ID token, so they cannot identify a workflow.
const OF_EVERY_TOKEN: [&str; 6] = ["iss", "aud", "exp", "nbf", "iat", "jti"];

/// Provider of a build service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Provider {
    Github,
    Gitlab,
    /// Any other service that supports OpenID Connect.
    Oidc,
}

impl Provider {
    /// Finds a provider by its name in the API.
    #[must_use]
    pub fn of(name: &str) -> Option<Provider> {
        [Provider::Github, Provider::Gitlab, Provider::Oidc]
            .into_iter()
            .find(|provider| provider.name() == name)
    }

    /// Returns the provider's name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Provider::Github => "github",
            Provider::Gitlab => "gitlab",
            Provider::Oidc => "oidc",
        }
    }

    /// Returns the issuer of the provider's public service, if there is one.
    #[must_use]
    pub fn public_issuer(self) -> Option<&'static str> {
        match self {
            Provider::Github => Some("https://token.actions.githubusercontent.com"),
            Provider::Gitlab => Some("https://gitlab.com"),
            Provider::Oidc => None,
        }
    }
}

/// Requirements on an ID token.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PublisherRule {
    Github(GithubRule),
    Gitlab(GitlabRule),
    /// Claims whose values must be equal to those in the token.
    Oidc(BTreeMap<String, Value>),
}

/// A GitHub Actions workflow. The comparison of names is case-insensitive, as on GitHub.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GithubRule {
    /// The user or organization that owns the repository.
    pub repository_owner: String,
    /// The repository, without its owner.
    pub repository: String,
    /// File name of the workflow below `.github/workflows/`.
    pub workflow: String,
    /// Environment of the job. `None` accepts a job with any environment and without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Numeric id of the owner. If `None`, the server records the id in the first matching token,
    /// and requires it from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_owner_id: Option<String>,
    /// Event that starts the workflow. `None` accepts all events except those that may run code
    /// from outsiders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_name: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GitlabRule {
    /// The user or group that owns the project, including the parent groups.
    pub namespace: String,
    /// The project, without its namespace.
    pub project: String,
    /// The file that defines the pipeline, for example `.gitlab-ci.yml`.
    pub workflow: String,
    /// Environment of the job. `None` accepts a job with any environment and without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Numeric id of the namespace. If `None`, the server records the id in the first matching
    /// token, and requires it from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
}

/// Difference between an ID token and a publisher's rule.
#[derive(Debug)]
pub(super) struct Mismatch {
    /// Number of requirements that matched before this one.
    pub(super) depth: u8,
    pub(super) sentence: String,
}

impl PublisherRule {
    /// Reads a rule from the API's JSON. The error is a sentence about the problem.
    pub fn read(provider: Provider, claims: Value) -> Result<PublisherRule, String> {
        match provider {
            Provider::Github => {
                let rule: GithubRule = serde_json::from_value(claims).map_err(|error| error.to_string())?;
                GithubRule::checked(rule).map(PublisherRule::Github)
            }
            Provider::Gitlab => {
                let rule: GitlabRule = serde_json::from_value(claims).map_err(|error| error.to_string())?;
                GitlabRule::checked(rule).map(PublisherRule::Gitlab)
            }
            Provider::Oidc => {
                let claims: BTreeMap<String, Value> =
                    serde_json::from_value(claims).map_err(|error| error.to_string())?;
                check_claims(&claims)?;
                Ok(PublisherRule::Oidc(claims))
            }
        }
    }

    /// Reads a stored rule. Returns `None` if the rule cannot be read; such a rule matches no
    /// token.
    pub(super) fn stored(provider: &str, claims: &str) -> Option<PublisherRule> {
        PublisherRule::read(Provider::of(provider)?, serde_json::from_str(claims).ok()?).ok()
    }

    /// Returns the owner's id if the rule states it.
    #[must_use]
    pub fn owner_id(&self) -> Option<&str> {
        match self {
            PublisherRule::Github(rule) => rule.repository_owner_id.as_deref(),
            PublisherRule::Gitlab(rule) => rule.namespace_id.as_deref(),
            PublisherRule::Oidc(_) => None,
        }
    }

    fn event_name(&self) -> Option<&str> {
        match self {
            PublisherRule::Github(rule) => rule.event_name.as_deref(),
            PublisherRule::Gitlab(_) => None,
            PublisherRule::Oidc(claims) => claims.get("event_name").and_then(Value::as_str),
        }
    }

    /// Checks the claims of an ID token. Returns the owner's id in the token, or `None` for a
    /// provider without such ids. `known` is the id that the rule states or that the server
    /// recorded.
    pub(super) fn judge(
        &self,
        known: Option<&str>,
        claims: &Map<String, Value>,
    ) -> Result<Option<String>, Mismatch> {
        match self {
            PublisherRule::Github(rule) => rule.judge(known, claims).map(Some),
            PublisherRule::Gitlab(rule) => rule.judge(known, claims).map(Some),
            PublisherRule::Oidc(expected) => judge_claims(expected, claims).map(|()| None),
        }
    }
}

/// Events that start a workflow with the repository's permissions although an outsider may have
/// written the code.
const FOREIGN_EVENTS: [&str; 2] = ["pull_request_target", "workflow_run"];

/// Refuses a workflow that one of the [`FOREIGN_EVENTS`] started, unless the publisher's rule names
/// this event.
pub(super) fn refuse_foreign_code(
    rule: &PublisherRule,
    claims: &Map<String, Value>,
) -> Result<(), IdTokenRefusal> {
    let event = text(claims, "event_name");
    if FOREIGN_EVENTS.contains(&event) && rule.event_name() != Some(event) {
        return Err(IdTokenRefusal::invalid(format!(
            "its workflow was started by {event}, which may run code from an untrusted contributor; a \
             publisher that sets `event_name` accepts it"
        )));
    }
    Ok(())
}

/// Describes a workflow by the repository, workflow, commit and run that the token states, or else
/// by the token's subject.
pub(super) fn describe_workflow(claims: &Map<String, Value>) -> String {
    let first = |names: &[&str]| {
        names.iter().map(|name| text(claims, name)).find(|text| !text.is_empty()).map(str::to_owned)
    };
    let Some(repository) = first(&["repository", "project_path"]) else {
        return text(claims, "sub").to_owned();
    };
    let workflow = first(&["workflow_ref", "ci_config_ref_uri", "job_workflow_ref"]);
    let workflow = workflow.as_deref().map(workflow_file).unwrap_or_default();
    let mut description = format!("{repository} {workflow}").trim_end().to_owned();
    for (word, names) in [("commit", &["sha"][..]), ("run", &["run_id", "pipeline_id"][..])] {
        let found = first(names).or_else(|| names.iter().find_map(|name| number(claims, name)));
        if let Some(found) = found {
            description = format!("{description} {word} {found}");
        }
    }
    description
}

/// Returns the file name from a workflow's address, for example from
/// `o/r/.github/workflows/release.yml@refs/heads/main`.
fn workflow_file(address: &str) -> &str {
    let path = address.rsplit_once('@').map_or(address, |(path, _)| path);
    match path.split_once("//") {
        Some((_, file)) => file,
        None => path.split_once("/.github/workflows/").map_or(path, |(_, file)| file),
    }
}

impl GithubRule {
    /// Normalises and checks a rule. Removes the owner from the repository, and the folder from the
    /// workflow.
    fn checked(mut rule: GithubRule) -> Result<GithubRule, String> {
        if let Some((owner, name)) = rule.repository.clone().split_once('/') {
            if !same(owner, &rule.repository_owner) {
                return Err("`repository` does not belong to `repository_owner`".to_owned());
            }
            name.clone_into(&mut rule.repository);
        }
        if let Some(file) = rule.workflow.strip_prefix(".github/workflows/") {
            rule.workflow = file.to_owned();
        }
        plain("repository_owner", &rule.repository_owner)?;
        plain("repository", &rule.repository)?;
        let file = rule.workflow.ends_with(".yml") || rule.workflow.ends_with(".yaml");
        if !file {
            return Err("`workflow` must be a file in .github/workflows, for example release.yml".to_owned());
        }
        plain("workflow", &rule.workflow)?;
        rule.environment = environment(rule.environment)?;
        digits("repository_owner_id", rule.repository_owner_id.as_deref())?;
        rule.event_name = rule.event_name.filter(|name| !name.is_empty());
        if let Some(event) = &rule.event_name {
            plain("event_name", event)?;
        }
        Ok(rule)
    }

    fn judge(&self, known: Option<&str>, claims: &Map<String, Value>) -> Result<String, Mismatch> {
        let repository = format!("{}/{}", self.repository_owner, self.repository);
        require(0, "repository", same(text(claims, "repository"), &repository))?;
        require(0, "repository_owner", same(text(claims, "repository_owner"), &self.repository_owner))?;
        let expected = format!("{repository}/.github/workflows/{}@", self.workflow);
        let of =
            |name: &str| text(claims, name).get(..expected.len()).is_some_and(|start| same(start, &expected));
        let started =
            ["workflow_ref", "job_workflow_ref"].into_iter().filter(|name| claims.contains_key(*name));
        let started: Vec<&str> = started.collect();
        require(1, "workflow", !started.is_empty() && started.into_iter().all(of))?;
        require_environment(2, self.environment.as_deref(), claims)?;
        let event = self.event_name.as_deref();
        require(2, "event_name", event.is_none_or(|event| text(claims, "event_name") == event))?;
        owner(3, "repository_owner_id", known, claims)
    }
}

impl GitlabRule {
    fn checked(mut rule: GitlabRule) -> Result<GitlabRule, String> {
        for part in rule.namespace.split('/') {
            plain("namespace", part)?;
        }
        plain("project", &rule.project)?;
        let file = rule.workflow.trim_start_matches('/').to_owned();
        rule.workflow = file;
        let is_file = rule.workflow.ends_with(".yml") || rule.workflow.ends_with(".yaml");
        if !is_file || rule.workflow.contains('@') || rule.workflow.len() > MAX_VALUE {
            return Err("`workflow` must be a file of the project, for example .gitlab-ci.yml".to_owned());
        }
        rule.environment = environment(rule.environment)?;
        digits("namespace_id", rule.namespace_id.as_deref())?;
        Ok(rule)
    }

    fn judge(&self, known: Option<&str>, claims: &Map<String, Value>) -> Result<String, Mismatch> {
        let project = format!("{}/{}", self.namespace, self.project);
        require(0, "project_path", same(text(claims, "project_path"), &project))?;
        require(0, "namespace_path", same(text(claims, "namespace_path"), &self.namespace))?;
        // The claim has the form ISSUER/PROJECT//FILE@REF, in which the issuer has no scheme.
        let issuer = text(claims, "iss");
        let issuer = issuer.split_once("://").map_or(issuer, |(_, rest)| rest).trim_end_matches('/');
        let expected = format!("{issuer}/{project}");
        let started = text(claims, "ci_config_ref_uri").split_once("//");
        let started = started.and_then(|(of, rest)| Some((of, rest.split_once('@')?.0)));
        let right = started.is_some_and(|(of, file)| same(of, &expected) && file == self.workflow);
        require(1, "workflow", right)?;
        require_environment(2, self.environment.as_deref(), claims)?;
        owner(3, "namespace_id", known, claims)
    }
}

fn judge_claims(expected: &BTreeMap<String, Value>, claims: &Map<String, Value>) -> Result<(), Mismatch> {
    let mut depth = 0;
    for (name, value) in expected {
        require(depth, name, claims.get(name) == Some(value))?;
        depth = depth.saturating_add(1);
    }
    Ok(())
}

fn check_claims(claims: &BTreeMap<String, Value>) -> Result<(), String> {
    if let Some(name) = claims.keys().find(|name| OF_EVERY_TOKEN.contains(&name.as_str())) {
        return Err(format!("`{name}` is checked for every ID token and does not identify a workflow"));
    }
    if !claims.contains_key("sub") && claims.len() < 2 {
        return Err("`sub` or at least two other claims are required".to_owned());
    }
    if claims.len() > MAX_CLAIMS {
        return Err(format!("at most {MAX_CLAIMS} claims are allowed"));
    }
    for (name, value) in claims {
        let scalar = match value {
            Value::String(text) => {
                !text.is_empty() && text.len() <= MAX_VALUE && !text.chars().any(char::is_control)
            }
            Value::Number(_) | Value::Bool(_) => true,
            _ => false,
        };
        if !scalar || name.is_empty() || name.len() > MAX_VALUE {
            return Err(format!("`{name}` must be a string, a number or a boolean"));
        }
    }
    Ok(())
}

/// Compares two names of GitHub or GitLab, which are ASCII and case-insensitive.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> &'a str {
    claims.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number that a service may write as a string or as a number.
fn number(claims: &Map<String, Value>, name: &str) -> Option<String> {
    match claims.get(name)? {
        Value::String(text) if is_number(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn require(depth: u8, claim: &str, right: bool) -> Result<(), Mismatch> {
    let wrong = || Mismatch { depth, sentence: format!("`{claim}` differs from the publisher's") };
    right.then_some(()).ok_or_else(wrong)
}

fn require_environment(
    depth: u8,
    expected: Option<&str>,
    claims: &Map<String, Value>,
) -> Result<(), Mismatch> {
    require(depth, "environment", expected.is_none_or(|expected| same(text(claims, "environment"), expected)))
}

/// Returns the owner's id, which must equal the known one. The name is not enough, because an owner
/// can release it and another owner can take it.
fn owner(
    depth: u8,
    claim: &str,
    known: Option<&str>,
    claims: &Map<String, Value>,
) -> Result<String, Mismatch> {
    let found = number(claims, claim);
    let right = found.as_deref().is_some_and(|found| known.is_none_or(|known| known == found));
    let sentence = format!(
        "`{claim}` is not the owner for whom the publisher was created; the name may belong to another \
         owner now"
    );
    found.filter(|_| right).ok_or(Mismatch { depth, sentence })
}

fn plain(name: &str, value: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b' ');
    let valid = !value.is_empty() && value.len() <= 255 && value.bytes().all(plain);
    valid.then_some(()).ok_or_else(|| format!("`{name}` must be a name of letters, digits, `-`, `_` and `.`"))
}

/// Normalises an empty environment to `None`.
fn environment(value: Option<String>) -> Result<Option<String>, String> {
    let value = value.filter(|value| !value.is_empty());
    let valid = value.as_ref().is_none_or(|value| value.len() <= 255 && !value.chars().any(char::is_control));
    if valid { Ok(value) } else { Err("`environment` must have 1 to 255 characters".to_owned()) }
}

fn digits(name: &str, value: Option<&str>) -> Result<(), String> {
    let valid = value.is_none_or(is_number);
    valid.then_some(()).ok_or_else(|| format!("`{name}` must be a string of digits"))
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
