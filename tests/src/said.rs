//! The texts of a repository's Connection Settings, filled in with a user's e-mail address and
//! token.

use crate::api::Api;
use crate::server::{OWNER, Server};
use serde_json::Value;

/// Connection Settings of a repository, filled in with the owner's e-mail address and a token.
#[derive(Debug)]
pub struct ConnectionTexts {
    clients: Vec<Value>,
    secret: String,
}

impl ConnectionTexts {
    /// Fetches the current Connection Settings.
    #[track_caller]
    pub fn of(server: &Server, id: &str, secret: &str) -> Self {
        let settings =
            Api::sign_in(server).call("GET", &format!("/v1/repositories/{id}/connection")).expect(200).json();
        let clients = settings["clients"].as_array().expect("a list of clients").clone();
        Self { clients, secret: secret.to_owned() }
    }

    /// The text for this client and purpose: the content of `file`, or a command if `file` is
    /// `None`.
    #[track_caller]
    pub fn text(&self, client: &str, purpose: &str, file: Option<&str>) -> String {
        let selected = |one: &&Value| {
            one["client"] == client && one["purpose"] == purpose && one["file"].as_str() == file
        };
        let found = self.clients.iter().find(selected);
        let found = found.unwrap_or_else(|| panic!("{client} {purpose} {file:?}: {:?}", self.clients));
        self.filled(found)
    }

    /// All texts: client, purpose, language, and the text.
    pub fn all(&self) -> Vec<[String; 4]> {
        let field = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let row = |one: &Value| {
            [field(one, "client"), field(one, "purpose"), field(one, "language"), self.filled(one)]
        };
        self.clients.iter().map(row).collect()
    }

    fn filled(&self, one: &Value) -> String {
        let text = one["text"].as_str().expect("a text");
        text.replace("<EMAIL>", OWNER).replace("<REPOSITORY_TOKEN>", &self.secret)
    }
}
