//! `packhouse login` and `packhouse logout`: store and forget the API token of a server.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use packhouse_config::{API_TOKEN_PREFIX, says_api_token};
use serde_json::Value;

use super::client::{ApiClient, ConnectionOptions};
use super::profiles::{self, ServerProfile};
use super::{address, terminal, text};
use crate::cli::print;

/// Arguments of `packhouse login URL`.
#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    /// Address of the server's management API
    #[arg(value_name = "URL")]
    url: String,
    /// Also trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Send the API token over plain HTTP to another machine
    #[arg(long)]
    insecure: bool,
}

/// Arguments of `packhouse logout URL`.
#[derive(Debug, Args)]
pub(crate) struct LogoutArguments {
    /// Address of the server's management API
    #[arg(value_name = "URL")]
    url: String,
}

impl LoginArguments {
    /// Reads the API token, checks it, and stores it for later commands.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = address::parse(&self.url)?;
        address::check_encryption(&url, self.insecure)?;
        let token = terminal::read_secret("API token")?;
        ensure!(
            says_api_token(token.reveal()),
            "this is not an API token: API tokens begin with {API_TOKEN_PREFIX}, and the portal makes them"
        );
        let failed = || format!("failed to find {}", self.ca.clone().unwrap_or_default().display());
        let ca = self.ca.as_ref().map(|file| file.canonicalize()).transpose().with_context(failed)?;
        let profile =
            ServerProfile { token: token.reveal().to_owned(), ca: ca.clone(), insecure: self.insecure };
        let key = address::key(&url);
        let client = ApiClient::new(ConnectionOptions { url, token, ca, insecure: self.insecure })?;
        let me = client.get(&["me"]).await?;
        let file = profiles::store(key.clone(), profile)?;
        print(&format!("signed in to {key} as {}; the login is in {}", owner(&me), file.display()))
    }
}

/// Returns the e-mail address of a person, or the name of a service account.
fn owner(me: &Value) -> &str {
    match text(me, "email") {
        email if email.contains('@') => email,
        _ => text(me, "name"),
    }
}

impl LogoutArguments {
    /// Removes the stored API token. The token itself stays valid on the server.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let key = address::key(&address::parse(&self.url)?);
        ensure!(profiles::forget(&key)?, "there is no login for {key}");
        print(&format!("signed out of {key}; the API token stays valid until it expires or is revoked"))
    }
}
