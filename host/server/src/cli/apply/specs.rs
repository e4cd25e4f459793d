//! The `spec` of each kind of document. An absent field is not managed: it gets the default when an
//! object is created, and stays as it is when an object is changed.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Repository. Its name is the name of the document.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepositorySpec {
    /// Format of its packages, which cannot be changed.
    format: String,
    /// `hosted`, `proxy` or `group`; it cannot be changed.
    kind: String,
    /// Upstream of a proxy, which must have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<UpstreamSpec>,
    /// Names of all members of a group, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<String>>,
    /// Settings by their names. Absent settings stay as they are; null resets one to its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    settings: Option<Map<String, Value>>,
}

/// Upstream of a proxy, with credentials if it needs them.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamSpec {
    /// Address of the upstream, http or https.
    url: String,
    /// Credentials of the proxy at its upstream. They cannot be read back, so each run writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<UpstreamCredentialsSpec>,
}

/// Account of a proxy at its upstream.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamCredentialsSpec {
    /// Name of the account at the upstream.
    username: String,
    /// Password or token of the account.
    password: SecretReference,
    /// Address of a token service on another host that may receive them.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_realm: Option<String>,
}

/// Place of a secret, which is never in a document itself. Exactly one field is given.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretReference {
    /// Environment variable that contains the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_env: Option<String>,
    /// File that contains the secret, relative to the folder of the documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    from_file: Option<PathBuf>,
}

/// Team. Its name is the name of the document.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamSpec {
    /// Text for people; it may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// All permissions of the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<PermissionsSpec>,
    /// All groups of an identity provider whose members join the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_groups: Option<Vec<String>>,
    /// All members that did not join through an external group: e-mail addresses of persons and
    /// names of service accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<String>>,
}

/// Permissions in the organization and in repositories.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PermissionsSpec {
    /// Permissions in the organization, such as `manage-members`.
    #[serde(default)]
    organization: Vec<String>,
    /// Permissions in repositories; entries for the same repository add up.
    #[serde(default)]
    repositories: Vec<RepositoryPermissionSpec>,
}

/// Actions in one repository or in several. An entry has exactly one of `repository` and
/// `repository_name`.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RepositoryPermissionSpec {
    /// Name of a repository, or `*` for all repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<String>,
    /// Pattern of repository names, in which `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_name: Option<String>,
    /// `read`, `publish`, `delete` and `manage`.
    actions: Vec<String>,
    /// Patterns of the packages that may be published and deleted; absent for all packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    packages: Option<Vec<String>>,
}

/// Service account. Its name is the name of the document.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceAccountSpec {
    /// All permissions of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<PermissionsSpec>,
    /// Names of all its teams.
    #[serde(skip_serializing_if = "Option::is_none")]
    teams: Option<Vec<String>>,
}

/// Workflow of a build service that may publish without a stored secret. The API has no name for
/// it, so repository, provider, issuer and claims identify it.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustedPublisherSpec {
    /// Name of the repository that it publishes to.
    repository: String,
    /// Provider: `github`, `gitlab` or `oidc`.
    provider: String,
    /// Issuer of the ID tokens; by default the public service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// Claims that an ID token must have.
    #[schema(value_type = Object)]
    claims: Map<String, Value>,
    /// Patterns of package names, in which `*` stands for any text.
    packages: Vec<String>,
    /// One or both of `read` and `write`.
    scope: Vec<String>,
}

/// Policy for versions. Its name is the name of the document.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicySpec {
    /// Name of a component beside the program, or digest of an installed one.
    component: String,
    /// All settings of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    settings: Option<Map<String, Value>>,
    /// Repositories to which it applies.
    repositories: RepositoryReach,
    /// Patterns of package names, one of which must match; null for all packages.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    packages: Option<Option<Vec<String>>>,
    /// `paused`, `warn` or `enforced`. The policy is previewed before it is enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

/// Names of repositories, or `*` for all present and future ones.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged, expecting = "expected a list of names of repositories, or \"*\"")]
pub(super) enum RepositoryReach {
    /// `*` for all present and future repositories.
    All(String),
    /// Names of repositories, at least one.
    Only(Vec<String>),
}

/// Rule that deletes old or unused versions. Its name is the name of the document.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionPolicySpec {
    /// Hosted repositories to which it applies.
    repositories: RepositoryReach,
    /// Versions to which it applies; all given conditions must match.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    matching: Option<RetentionMatchSpec>,
    /// Versions to delete; all given conditions must hold. At least one is required.
    delete: RetentionDeleteSpec,
    /// Versions to keep in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<RetentionKeepSpec>,
    /// Maximum number of versions that one run deletes.
    max_deletes: u64,
    /// `paused` or `enforced`. The policy is previewed before it is enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
}

/// Versions to which a retention policy applies.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionMatchSpec {
    /// Patterns of package names, one of which must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    packages: Option<Vec<String>>,
    /// Patterns of versions, one of which must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<Vec<String>>,
    /// True for versions with a tag, false for versions without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    tagged: Option<bool>,
    /// True for pre-releases, false for other versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    prerelease: Option<bool>,
}

/// Versions that a retention policy deletes.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionDeleteSpec {
    /// Published at least so many days ago; 0 for any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    published_before_days: Option<u32>,
    /// Not downloaded for so many days; 0 for any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_downloaded_days: Option<u32>,
}

/// Versions that a retention policy keeps in any case.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionKeepSpec {
    /// Number of the newest versions to keep of each package.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<u32>,
    /// Patterns of versions to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<Vec<String>>,
}

/// Webhook. The name of the document is the address that receives the events.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookSpec {
    /// Names of events, at least one.
    events: Vec<String>,
    /// Repositories whose events it receives.
    repositories: RepositoryReach,
    /// `active` or `paused`; a new webhook is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// File for the secret that the server makes for a new webhook, relative to the folder of the
    /// documents. Required to create the webhook, because the server shows the secret only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    secret_file: Option<PathBuf>,
}

/// Reads a field that may be null. An absent one is `None`.
fn given<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
