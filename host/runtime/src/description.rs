//! What a plugin says of itself: the JSON object that `describe` returns.
//!
//! Fields that this host does not know are ignored, so that a plugin may describe what a later host understands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A plugin's description. docs/PLUGINS.md lists these fields for authors.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Description {
    /// The format's name in addresses, settings and tokens: lower-case letters, digits and `-`, 1 to 32 characters.
    pub format: String,
    /// The plugin's own version, for people.
    pub version: String,
    /// Kinds of repository it can serve: of `hosted`, `proxy`, `group`. At least one.
    #[serde(default = "hosted")]
    pub kinds: Vec<String>,
    /// How errors look on the wire.
    #[serde(default)]
    pub error_style: ErrorStyle,
    /// Which challenge a 401 carries.
    #[serde(default)]
    pub challenge: Challenge,
    /// Whether the user name beside a token must be right; else it is ignored.
    #[serde(default)]
    pub checks_username: bool,
    /// Status for a refused credential on reads.
    #[serde(default = "unauthorized")]
    pub refused_read_status: u16,
    /// Status for a refused credential on writes.
    #[serde(default = "unauthorized")]
    pub refused_write_status: u16,
    /// Status for a repository that the credential does not reach.
    #[serde(default = "forbidden")]
    pub not_reached_status: u16,
    /// Formats of tokens that are good here besides the general ones; empty means this format's own name.
    #[serde(default)]
    pub token_formats: Vec<String>,
    /// Kinds of credential that a proxy's upstream may need: of `basic`, `bearer`.
    #[serde(default)]
    pub upstream_credentials: Vec<String>,
    /// Whether `%2f` may stand in a path segment.
    #[serde(default)]
    pub encoded_slash: bool,
    /// Request headers that the plugin wants to see besides `accept` and `content-*`, in lower case. Never a credential's.
    #[serde(default)]
    pub request_headers: Vec<String>,
    /// Paths at the root of the repository host that are this format's.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Settings of a repository of this format, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Bounds of what the format accepts.
    #[serde(default)]
    pub limits: DescriptionLimits,
}

/// How errors look on the wire.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorStyle {
    /// One object: `error`, with `reason_code` or `code`.
    #[default]
    Plain,
    /// A list under `errors`, as registries of images do it.
    Registry,
}

/// Which challenge a 401 carries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Challenge {
    /// `Basic realm=…`.
    #[default]
    Basic,
    /// `Bearer realm=…`, naming the token service.
    Bearer,
}

/// A path at the root that is a format's.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    /// What `request.claim` answers.
    pub name: String,
    /// As `/v2/`; with `{repository}` where a repository's name stands. The rest below it is the request's path.
    pub path: String,
    /// For a bearer challenge: the scope's template, with `{repository}`, `{subject}` and `{action}`.
    #[serde(default)]
    pub challenge: Option<String>,
}

/// One setting of a repository.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Setting {
    /// Which values it may have.
    pub kind: SettingKind,
    /// In force where nothing is set.
    pub default: serde_json::Value,
    /// Of a `choice`: what may be chosen.
    #[serde(default)]
    pub choices: Vec<String>,
    /// One line for people.
    #[serde(default)]
    pub summary: String,
}

/// Which values a setting may have.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number, not negative.
    Integer,
    /// Text.
    Text,
    /// One of `choices`.
    Choice,
    /// A list of texts.
    List,
}

/// Bounds of what a format accepts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DescriptionLimits {
    /// Bytes of one request's body at most.
    #[serde(default)]
    pub max_file_bytes: Option<u64>,
}

fn hosted() -> Vec<String> {
    vec!["hosted".to_owned()]
}

fn unauthorized() -> u16 {
    401
}

fn forbidden() -> u16 {
    403
}
