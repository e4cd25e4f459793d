//! What a publisher says of the ID tokens that are its own, for each provider of build services, and whether one is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::refusal::IdTokenRefusal;

/// Characters of a value that a publisher names.
const MAX_VALUE: usize = 512;
/// Claims that a publisher of any other service names at most.
const MAX_CLAIMS: usize = 20;
/// Claims that every ID token has anew, so that none of them tells a workflow.
const OF_EVERY_TOKEN: [&str; 6] = ["iss", "aud", "exp", "nbf", "iat", "jti"];

/// Whose build service it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Provider {
    /// GitHub Actions.
    Github,
    /// GitLab CI/CD.
    Gitlab,
    /// Any other that speaks OpenID Connect.
    Oidc,
}

impl Provider {
    /// By its name on the wire.
    #[must_use]
    pub fn of(name: &str) -> Option<Provider> {
        [Provider::Github, Provider::Gitlab, Provider::Oidc]
            .into_iter()
            .find(|provider| provider.name() == name)
    }

    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Provider::Github => "github",
            Provider::Gitlab => "gitlab",
            Provider::Oidc => "oidc",
        }
    }

    /// The issuer of the public service; none where there is no such.
    #[must_use]
    pub fn public_issuer(self) -> Option<&'static str> {
        match self {
            Provider::Github => Some("https://token.actions.githubusercontent.com"),
            Provider::Gitlab => Some("https://gitlab.com"),
            Provider::Oidc => None,
        }
    }
}

/// What an ID token must say.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PublisherRule {
    /// A workflow of GitHub's.
    Github(GithubRule),
    /// A pipeline of GitLab's.
    Gitlab(GitlabRule),
    /// Claims as they stand.
    Oidc(BTreeMap<String, Value>),
}

/// A workflow of GitHub's. Names are compared without regard to case, as GitHub does.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GithubRule {
    /// The user or organization.
    pub repository_owner: String,
    /// The repository, without its owner.
    pub repository: String,
    /// The file below `.github/workflows/`.
    pub workflow: String,
    /// The environment that the job runs in; none: any, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The owner's number; none: as it is seen first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_owner_id: Option<String>,
    /// The event that begins the workflow; none: any but those that run what a stranger wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_name: Option<String>,
}

/// A pipeline of GitLab's.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GitlabRule {
    /// The user or group, with the groups that it is in.
    pub namespace: String,
    /// The project, without its namespace.
    pub project: String,
    /// The file that says what the pipeline does, as `.gitlab-ci.yml`.
    pub workflow: String,
    /// The environment that the job runs in; none: any, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The namespace's number; none: as it is seen first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
}

/// What about an ID token is not as a publisher says.
#[derive(Debug)]
pub(super) struct Mismatch {
    /// How much matched before.
    pub(super) depth: u8,
    /// What it is, for people.
    pub(super) sentence: String,
}

impl PublisherRule {
    /// What somebody wrote; what is wrong with it, as a sentence.
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

    /// What stands in a row; none for what cannot be read, which matches nothing.
    pub(super) fn stored(provider: &str, claims: &str) -> Option<PublisherRule> {
        PublisherRule::read(Provider::of(provider)?, serde_json::from_str(claims).ok()?).ok()
    }

    /// The owner's number, where it was stated.
    #[must_use]
    pub fn owner_id(&self) -> Option<&str> {
        match self {
            PublisherRule::Github(rule) => rule.repository_owner_id.as_deref(),
            PublisherRule::Gitlab(rule) => rule.namespace_id.as_deref(),
            PublisherRule::Oidc(_) => None,
        }
    }

    /// The event that it names.
    fn event_name(&self) -> Option<&str> {
        match self {
            PublisherRule::Github(rule) => rule.event_name.as_deref(),
            PublisherRule::Gitlab(_) => None,
            PublisherRule::Oidc(claims) => claims.get("event_name").and_then(Value::as_str),
        }
    }

    /// The owner's number in an ID token that is as this says; none where the provider has no such. `known` is the number that was
    /// stated or seen first.
    pub(super) fn judge(
        &self,
        known: Option<&str>,
        claims: &Map<String, Value>,
    ) -> Result<Option<String>, Mismatch> {
        match self {
            PublisherRule::Github(rule) => rule.judge(known, claims).map(Some),
            PublisherRule::Gitlab(rule) => rule.judge(known, claims).map(Some),
            PublisherRule::Oidc(wanted) => judge_claims(wanted, claims).map(|()| None),
        }
    }
}

/// Events that begin a workflow with the repository's rights for whoever wrote what it runs on.
const FOREIGN_EVENTS: [&str; 2] = ["pull_request_target", "workflow_run"];

/// Refuses a workflow that such an event began, unless the publisher names the event.
pub(super) fn refuse_foreign_code(
    rule: &PublisherRule,
    claims: &Map<String, Value>,
) -> Result<(), IdTokenRefusal> {
    let event = text(claims, "event_name");
    if FOREIGN_EVENTS.contains(&event) && rule.event_name() != Some(event) {
        return Err(IdTokenRefusal::invalid(format!(
            "it is of a workflow that {event} began, which may run what a stranger wrote; a publisher that names \
             `event_name` lets it pass"
        )));
    }
    Ok(())
}

/// Repository, workflow, commit and run, as far as an ID token tells them; else its subject.
pub(super) fn told(claims: &Map<String, Value>) -> String {
    let first = |names: &[&str]| {
        names.iter().map(|name| text(claims, name)).find(|text| !text.is_empty()).map(str::to_owned)
    };
    let Some(repository) = first(&["repository", "project_path"]) else {
        return text(claims, "sub").to_owned();
    };
    let workflow = first(&["workflow_ref", "ci_config_ref_uri", "job_workflow_ref"]);
    let workflow = workflow.as_deref().map(workflow_file).unwrap_or_default();
    let mut told = format!("{repository} {workflow}").trim_end().to_owned();
    for (word, names) in [("commit", &["sha"][..]), ("run", &["run_id", "pipeline_id"][..])] {
        let found = first(names).or_else(|| names.iter().find_map(|name| number(claims, name)));
        if let Some(found) = found {
            told = format!("{told} {word} {found}");
        }
    }
    told
}

/// The file of a workflow's address, as `o/r/.github/workflows/release.yml@refs/heads/main`.
fn workflow_file(address: &str) -> &str {
    let path = address.rsplit_once('@').map_or(address, |(path, _)| path);
    match path.split_once("//") {
        Some((_, file)) => file,
        None => path.split_once("/.github/workflows/").map_or(path, |(_, file)| file),
    }
}

impl GithubRule {
    /// In the one spelling: the repository without its owner, the workflow without its folder.
    fn checked(mut rule: GithubRule) -> Result<GithubRule, String> {
        if let Some((owner, name)) = rule.repository.clone().split_once('/') {
            if !same(owner, &rule.repository_owner) {
                return Err("`repository` is another owner's than `repository_owner` says".to_owned());
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
            return Err("`workflow` is a file of .github/workflows, as release.yml".to_owned());
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
        let wanted = format!("{repository}/.github/workflows/{}@", self.workflow);
        let of =
            |name: &str| text(claims, name).get(..wanted.len()).is_some_and(|start| same(start, &wanted));
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
            return Err("`workflow` is a file of the project, as .gitlab-ci.yml".to_owned());
        }
        rule.environment = environment(rule.environment)?;
        digits("namespace_id", rule.namespace_id.as_deref())?;
        Ok(rule)
    }

    fn judge(&self, known: Option<&str>, claims: &Map<String, Value>) -> Result<String, Mismatch> {
        let project = format!("{}/{}", self.namespace, self.project);
        require(0, "project_path", same(text(claims, "project_path"), &project))?;
        require(0, "namespace_path", same(text(claims, "namespace_path"), &self.namespace))?;
        // ISSUER/PROJECT//FILE@REF, where the issuer stands without its scheme.
        let issuer = text(claims, "iss");
        let issuer = issuer.split_once("://").map_or(issuer, |(_, rest)| rest).trim_end_matches('/');
        let wanted = format!("{issuer}/{project}");
        let started = text(claims, "ci_config_ref_uri").split_once("//");
        let started = started.and_then(|(of, rest)| Some((of, rest.split_once('@')?.0)));
        let right = started.is_some_and(|(of, file)| same(of, &wanted) && file == self.workflow);
        require(1, "workflow", right)?;
        require_environment(2, self.environment.as_deref(), claims)?;
        owner(3, "namespace_id", known, claims)
    }
}

fn judge_claims(wanted: &BTreeMap<String, Value>, claims: &Map<String, Value>) -> Result<(), Mismatch> {
    let mut depth = 0;
    for (name, value) in wanted {
        require(depth, name, claims.get(name) == Some(value))?;
        depth = depth.saturating_add(1);
    }
    Ok(())
}

fn check_claims(claims: &BTreeMap<String, Value>) -> Result<(), String> {
    if let Some(name) = claims.keys().find(|name| OF_EVERY_TOKEN.contains(&name.as_str())) {
        return Err(format!("`{name}` is judged of every ID token and tells no workflow"));
    }
    if !claims.contains_key("sub") && claims.len() < 2 {
        return Err("`sub` is needed, or two others at least".to_owned());
    }
    if claims.len() > MAX_CLAIMS {
        return Err(format!("at most {MAX_CLAIMS} claims are compared"));
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
            return Err(format!("`{name}` is to be a text, a number or a truth value"));
        }
    }
    Ok(())
}

/// GitHub's and GitLab's names are ASCII, and are the same in either case.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> &'a str {
    claims.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A number that services write as a text or as a number.
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
    let wrong = || Mismatch { depth, sentence: format!("`{claim}` is not what the publisher says") };
    right.then_some(()).ok_or_else(wrong)
}

fn require_environment(depth: u8, wanted: Option<&str>, claims: &Map<String, Value>) -> Result<(), Mismatch> {
    require(depth, "environment", wanted.is_none_or(|wanted| same(text(claims, "environment"), wanted)))
}

/// The owner's number, which has to be the one that is known: a name can be given up and taken by somebody else.
fn owner(
    depth: u8,
    claim: &str,
    known: Option<&str>,
    claims: &Map<String, Value>,
) -> Result<String, Mismatch> {
    let found = number(claims, claim);
    let right = found.as_deref().is_some_and(|found| known.is_none_or(|known| known == found));
    let sentence = format!(
        "`{claim}` is not that of the owner whom the publisher was made for: the name may be another's by now"
    );
    found.filter(|_| right).ok_or(Mismatch { depth, sentence })
}

fn plain(name: &str, value: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b' ');
    let valid = !value.is_empty() && value.len() <= 255 && value.bytes().all(plain);
    valid.then_some(()).ok_or_else(|| format!("`{name}` is a name of letters, digits, `-`, `_` and `.`"))
}

/// An empty one is none.
fn environment(value: Option<String>) -> Result<Option<String>, String> {
    let value = value.filter(|value| !value.is_empty());
    let valid = value.as_ref().is_none_or(|value| value.len() <= 255 && !value.chars().any(char::is_control));
    if valid { Ok(value) } else { Err("`environment` has 1 to 255 characters".to_owned()) }
}

fn digits(name: &str, value: Option<&str>) -> Result<(), String> {
    let valid = value.is_none_or(is_number);
    valid.then_some(()).ok_or_else(|| format!("`{name}` is a text of digits"))
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
