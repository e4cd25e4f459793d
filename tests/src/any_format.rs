//! A repository of any format with a token of its own, and a home for any client that is on the path.

use crate::api::{Api, Token};
use crate::clients::{Said, has, run};
use crate::http::Client;
use crate::server::{OWNER, Server};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A repository with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct FormatRepository {
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that shows the token.
    pub client: Client,
    /// Its address without a slash at its end.
    pub url: String,
    name: String,
}

impl FormatRepository {
    /// Makes a hosted one.
    #[track_caller]
    pub fn hosted(server: &Server, format: &str, name: &str) -> Self {
        Self::create(server, format, name, &json!({"kind": "hosted"}), &[])
    }

    /// Makes a proxy of that address.
    #[track_caller]
    pub fn proxy(server: &Server, format: &str, name: &str, upstream: &str) -> Self {
        Self::create(server, format, name, &json!({"kind": "proxy", "upstream": {"url": upstream}}), &[])
    }

    /// Makes a group of these; its token reaches them as well.
    #[track_caller]
    pub fn group(server: &Server, format: &str, name: &str, members: &[&Self]) -> Self {
        let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
        Self::create(server, format, name, &json!({"kind": "group", "members": ids}), &ids)
    }

    /// Makes one with what `more` says; its token reaches these as well.
    #[track_caller]
    pub fn create(server: &Server, format: &str, name: &str, more: &Value, reached: &[&str]) -> Self {
        let api = Api::sign_in(server);
        let mut body = more.clone();
        (body["name"], body["format"]) = (json!(name), json!(format));
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let reached: Vec<&str> = reached.iter().copied().chain([id.as_str()]).collect();
        let token = api.create_token(&reached, &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self {
            url: format!("http://{}/repositories/{name}", server.packages()),
            id,
            token,
            client,
            name: name.into(),
        }
    }

    /// Tells a proxy what to show to its upstream.
    #[track_caller]
    pub fn show_upstream(&self, server: &Server, username: &str, password: &str) {
        let api = Api::sign_in(server);
        let body = json!({
            "username": username, "password": password,
            "confirmation_token": api.confirm("set_upstream_credentials"),
        });
        api.send("PUT", &format!("/v1/repositories/{}/upstream-credentials", self.id), &body).expect(204);
    }

    /// What Connection Settings say to this client for a purpose, in this file or as a command, with the token in it.
    #[track_caller]
    pub fn told(&self, server: &Server, client: &str, purpose: &str, file: Option<&str>) -> String {
        let path = format!("/v1/repositories/{}/connection", self.id);
        let said = Api::sign_in(server).call("GET", &path).expect(200).json();
        let all = said["clients"].as_array().expect("a list of clients");
        let wanted = |one: &&Value| {
            one["client"] == client && one["purpose"] == purpose && one["file"].as_str() == file
        };
        let found = all.iter().find(wanted).unwrap_or_else(|| panic!("{client} {purpose} {file:?}: {said}"));
        let text = found["text"].as_str().expect("a text");
        text.replace("<EMAIL>", OWNER).replace("<REPOSITORY_TOKEN>", &self.token.secret)
    }

    /// The address below the repository host.
    pub fn path(&self, path: &str) -> String {
        format!("/repositories/{}/{path}", self.name)
    }

    /// Its address with this token in it.
    pub fn url_of(&self, secret: &str) -> String {
        self.url.replacen("http://", &format!("http://{}:{secret}@", OWNER.replace('@', "%40")), 1)
    }
}

/// A home for a client's runs: a workspace, caches, an environment without the caller's own settings.
#[derive(Debug)]
pub struct ClientHome(TempDir);

impl ClientHome {
    /// A fresh one; the reason when this program is not on the path.
    pub fn with(program: &str) -> Result<Self, String> {
        if !has(program) {
            return Err(format!("no {program} here: `./bootstrap test` installs it"));
        }
        TempDir::new().map(Self).map_err(|error| error.to_string())
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("a folder of the workspace");
        fs::write(&path, bytes).expect("a file of the workspace");
    }

    /// Reads one.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs these lines of a shell in a folder of the workspace.
    #[track_caller]
    pub fn shell(&self, folder: &str, lines: &str, variables: &[(&str, &str)]) -> Said {
        self.run(folder, "bash", &["-e", "-c", lines], variables)
    }

    /// Runs a program with these arguments and variables in a folder of the workspace.
    #[track_caller]
    pub fn run(&self, folder: &str, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("LC_ALL", "C.UTF-8").envs(variables.iter().copied());
        run(command.args(arguments).current_dir(self.folder().join(folder)))
    }
}
