//! Python's clients, and a repository for them. Each client runs in a home folder of its own, from
//! the environment that `bootstrap` made.

use crate::api::{Api, Token};
use crate::clients::{ProgramOutput, run};
use crate::http::{Client, Request, Response};
use crate::server::{OWNER, Server};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The boundary between the parts of a form.
const BOUNDARY: &str = "a-boundary-of-the-tests";

/// Media type of the Simple API in JSON.
pub const SIMPLE_JSON: &str = "application/vnd.pypi.simple.v1+json";

/// A Python repository with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct PythonRepository {
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that sends the token.
    pub client: Client,
    /// Its URL without a slash at its end.
    pub url: String,
    name: String,
    base: String,
}

impl PythonRepository {
    /// Creates a hosted repository of this name.
    #[track_caller]
    pub fn create(server: &Server, name: &str) -> Self {
        Self::create_as(server, name, &json!({"kind": "hosted"}))
    }

    /// Creates a proxy of this name with these settings.
    #[track_caller]
    pub fn proxy(server: &Server, name: &str, upstream: &str, settings: &Value) -> Self {
        let more = json!({"kind": "proxy", "upstream": {"url": upstream}, "settings": settings});
        Self::create_as(server, name, &more)
    }

    /// Creates a group of these repositories; its token reaches them too.
    #[track_caller]
    pub fn group(server: &Server, name: &str, members: &[&Self], settings: &Value) -> Self {
        let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
        let group =
            Self::create_as(server, name, &json!({"kind": "group", "members": ids, "settings": settings}));
        let reached: Vec<&str> = ids.into_iter().chain([group.id.as_str()]).collect();
        group.with_token(server, Api::sign_in(server).create_token(&reached, &["read", "write"], None))
    }

    /// This repository with another token.
    pub fn with_token(&self, server: &Server, token: Token) -> Self {
        Self { client: server.anonymous().basic(OWNER, &token.secret), token, ..self.clone() }
    }

    /// Creates a repository with these fields in addition to name and format.
    #[track_caller]
    pub fn create_as(server: &Server, name: &str, more: &Value) -> Self {
        let api = Api::sign_in(server);
        let mut body = more.clone();
        body["name"] = json!(name);
        body["format"] = json!("python");
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let token = api.create_token(&[&id], &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        let base = server.packages().to_string();
        Self { url: format!("http://{base}/repositories/{name}"), id, token, client, name: name.into(), base }
    }

    /// The URL of its index, without a credential.
    pub fn index(&self) -> String {
        format!("{}/simple/", self.url)
    }

    /// The URL of its index, with this token in it.
    pub fn index_of(&self, secret: &str) -> String {
        format!(
            "http://{}:{secret}@{}/repositories/{}/simple/",
            OWNER.replace('@', "%40"),
            self.base,
            self.name
        )
    }

    /// The URL path of a resource in the repository.
    pub fn path(&self, path: &str) -> String {
        format!("/repositories/{}/{path}", self.name)
    }

    /// Publishes a file by the upload form.
    #[track_caller]
    pub fn publish(&self, project: &str, version: &str, file: &str, content: &[u8]) -> Response {
        self.publish_from(project, version, file, &mut &*content, content.len() as u64)
    }

    /// Publishes `length` bytes of `source` as this file.
    #[track_caller]
    pub fn publish_from(
        &self,
        project: &str,
        version: &str,
        file: &str,
        source: &mut dyn Read,
        length: u64,
    ) -> Response {
        let part = |what: &str, value: &str| {
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name={what}\r\n\r\n{value}")
        };
        let fields = [(":action", "file_upload"), ("name", project), ("version", version)];
        let fields = fields.map(|(name, value)| part(&format!("\"{name}\""), value) + "\r\n").concat();
        let before = fields + &part(&format!("\"content\"; filename=\"{file}\""), "");
        let after = format!("\r\n--{BOUNDARY}--\r\n");
        let request = Request::new("POST", &self.path(""))
            .header("Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"));
        let whole = (before.len() + after.len()) as u64 + length;
        let mut form = before.as_bytes().chain(source.take(length)).chain(after.as_bytes());
        self.client.send_from(request, &mut form, whole).expect("the upload is answered")
    }

    /// A project's page in JSON.
    #[track_caller]
    pub fn page(&self, project: &str) -> Value {
        self.ask(project).expect(200).json()
    }

    /// The answer to a request for a project's page in JSON.
    #[track_caller]
    pub fn ask(&self, project: &str) -> Response {
        let request = Request::new("GET", &self.path(&format!("simple/{project}/")));
        self.client.send(request.header("Accept", SIMPLE_JSON))
    }

    /// GET of a file of a project's version.
    #[track_caller]
    pub fn file(&self, project: &str, version: &str, name: &str) -> Response {
        self.client.get(&self.path(&format!("packages/{project}/{version}/{name}")))
    }
}

/// A home folder in which the clients run. It contains the workspace and the caches. The clients
/// get an environment without the caller's own settings.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    bin: PathBuf,
}

impl Home {
    /// A fresh home; the error says that the client is not installed here.
    pub fn with(client: &str) -> Result<Self, String> {
        let bin = crate::checkout().join(".tools/python-clients/bin");
        if !bin.join(client).is_file() {
            return Err(format!("no {client} in .tools/python-clients: `./bootstrap test` installs it"));
        }
        Ok(Self { folder: TempDir::new().map_err(|error| error.to_string())?, bin })
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("a folder of the workspace");
        fs::write(&path, bytes).expect("a file of the workspace");
        path
    }

    /// The Python that the clients run in.
    pub fn python(&self) -> PathBuf {
        self.bin.join("python")
    }

    /// A client, in a folder of the workspace.
    pub fn command(&self, folder: &str, client: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = self.bin.join(client);
        // An installed script begins with the path that its Python had at installation. The
        // checkout may have moved since, so the script's own first line may be wrong.
        let is_script = fs::File::open(&program).is_ok_and(|mut file| {
            let mut start = [0; 2];
            file.read_exact(&mut start).is_ok() && start == *b"#!"
        });
        let mut command = Command::new(if is_script { self.python() } else { program.clone() });
        command.args(is_script.then_some(program));
        self.isolated(command, folder, &path)
    }

    /// A shell in the workspace, which finds the clients.
    pub fn shell(&self) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(all).expect("a path");
        self.isolated(Command::new("bash"), "", &path)
    }

    /// Removes the caller's environment except the path.
    fn isolated(&self, mut command: Command, folder: &str, path: &OsStr) -> Command {
        command.env_clear().env("PATH", path).env("HOME", self.folder()).env("LC_ALL", "C.UTF-8");
        command.current_dir(self.folder().join(folder));
        for (name, value) in [
            ("PIP_CONFIG_FILE", "/dev/null"),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
            ("PIP_NO_INPUT", "1"),
            ("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring"),
            ("UV_PYTHON_DOWNLOADS", "never"),
            ("POETRY_VIRTUALENVS_IN_PROJECT", "true"),
            ("NO_COLOR", "1"),
            ("COLUMNS", "500"),
        ] {
            command.env(name, value);
        }
        command.env("UV_PYTHON", self.python());
        command
    }

    /// Runs a client with these arguments and variables in a folder of the workspace.
    #[track_caller]
    pub fn run(
        &self,
        folder: &str,
        client: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> ProgramOutput {
        run(self.command(folder, client).args(arguments).envs(variables.iter().copied()))
    }
}
