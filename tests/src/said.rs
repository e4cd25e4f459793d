//! What Connection Settings say, with the reader's own e-mail address and token put into them.

use crate::api::Api;
use crate::server::{OWNER, Server};
use serde_json::Value;

/// What the page of a repository says, with the owner's e-mail address and a token in it.
#[derive(Debug)]
pub struct ConnectionSaid {
    clients: Vec<Value>,
    secret: String,
}

impl ConnectionSaid {
    /// What it says now.
    #[track_caller]
    pub fn of(server: &Server, id: &str, secret: &str) -> Self {
        let said =
            Api::sign_in(server).call("GET", &format!("/v1/repositories/{id}/connection")).expect(200).json();
        let clients = said["clients"].as_array().expect("a list of clients").clone();
        Self { clients, secret: secret.to_owned() }
    }

    /// The text of a client for a purpose, in this file, or a command.
    #[track_caller]
    pub fn text(&self, client: &str, purpose: &str, file: Option<&str>) -> String {
        let wanted = |one: &&Value| {
            one["client"] == client && one["purpose"] == purpose && one["file"].as_str() == file
        };
        let found = self.clients.iter().find(wanted);
        let found = found.unwrap_or_else(|| panic!("{client} {purpose} {file:?}: {:?}", self.clients));
        self.filled(found)
    }

    /// Each text: client, purpose, language, and the text.
    pub fn all(&self) -> Vec<[String; 4]> {
        let field = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let said = |one: &Value| {
            [field(one, "client"), field(one, "purpose"), field(one, "language"), self.filled(one)]
        };
        self.clients.iter().map(said).collect()
    }

    fn filled(&self, one: &Value) -> String {
        let text = one["text"].as_str().expect("a text");
        text.replace("<EMAIL>", OWNER).replace("<REPOSITORY_TOKEN>", &self.secret)
    }
}
