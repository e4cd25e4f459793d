//! Commands against a running server: they call its management API with an API token instead of
//! opening its database. `packhouse login` and `packhouse logout` store and forget API tokens.

mod address;
mod client;
mod context;
mod login;
mod profiles;
mod refusal;
mod terminal;

pub(crate) use client::ApiClient;
pub(super) use context::{RemoteContext, ids_of, names_of};
pub(crate) use login::{LoginArguments, LogoutArguments};
pub(crate) use refusal::ApiRefusal;

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use packhouse_config::Secret;
use serde_json::{Map, Value};

use super::SettingFlags;
use client::ConnectionOptions;

/// Environment variable with the API token.
const TOKEN: &str = "PACKHOUSE_API_TOKEN";

/// Options of commands that can also work on a running server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerFlags {
    /// Call the management API of this server instead of opening its database; the API token comes
    /// from PACKHOUSE_API_TOKEN or from `packhouse login`
    #[arg(long, value_name = "URL", env = "PACKHOUSE_SERVER")]
    server: Option<String>,
    /// Also trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// Send the API token over plain HTTP to another machine
    #[arg(long, requires = "server")]
    insecure: bool,
}

impl ServerFlags {
    /// Returns a client of the server, or `None` if the command works on a database. Fails if
    /// `settings` name a database beside the server.
    pub(super) fn connect(&self, settings: &SettingFlags) -> anyhow::Result<Option<ApiClient>> {
        let Some(server) = self.address() else { return Ok(None) };
        ensure!(
            !settings.is_given(),
            "a command works either on a database or through the API of a server: remove the flags of settings such \
             as --data, or remove --server (PACKHOUSE_SERVER)"
        );
        self.open(server).map(Some)
    }

    /// Returns a client of the server. Fails without a server, for commands that work only through
    /// the API.
    pub(super) fn required(&self) -> anyhow::Result<ApiClient> {
        match self.address() {
            Some(server) => self.open(server),
            None => bail!(
                "this command works through the API of a server: name the server with --server URL or PACKHOUSE_SERVER"
            ),
        }
    }

    /// Fails if a server is named, for commands without an API.
    pub(super) fn refuse(&self) -> anyhow::Result<()> {
        ensure!(
            self.address().is_none(),
            "the API has no call for this command: run it on the machine of the server, without --server \
             (PACKHOUSE_SERVER)"
        );
        Ok(())
    }

    fn address(&self) -> Option<&str> {
        self.server.as_deref().filter(|server| !server.is_empty())
    }

    /// Takes the API token from the environment, or else from the login at this server.
    fn open(&self, server: &str) -> anyhow::Result<ApiClient> {
        let url = address::parse(server)?;
        let profile = profiles::find(&address::key(&url))?;
        let of_environment = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let token = of_environment.or_else(|| profile.as_ref().map(|profile| profile.token.clone()));
        let token = token.with_context(|| {
            format!("there is no API token for {server}: set {TOKEN}, or run `packhouse login {server}`")
        })?;
        let (ca, insecure) = profile.map(|profile| (profile.ca, profile.insecure)).unwrap_or_default();
        ApiClient::new(ConnectionOptions {
            url,
            token: Secret::new(token),
            ca: self.ca.clone().or(ca),
            insecure: self.insecure || insecure,
        })
    }
}

/// Returns the text of a field of a JSON object, or an empty text.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a JSON object with only these fields of `object`; absent fields are null.
pub(super) fn pick(object: &Value, fields: &[&str]) -> Value {
    let field = |name: &&str| ((*name).to_owned(), object.get(*name).cloned().unwrap_or_default());
    Value::Object(fields.iter().map(field).collect::<Map<String, Value>>())
}
