//! Runs a server with one component in a child process, for `plugins test` and `plugins dev`. Both
//! commands use the server over its two addresses like any client, and read its log.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail, ensure};
use packhouse_runtime::Inspection;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::cli::program;

/// Log filter. Besides the usual lines it logs intents, record accesses and refusal codes of
/// requests.
const LOG: &str =
    "info,packhouse::intent=debug,packhouse::records=debug,packhouse::refusal=debug,packhouse::plugin=trace";
/// E-mail address of the server's owner.
pub(super) const OWNER: &str = "owner@localhost";

/// Options for starting the server.
pub(super) struct StartOptions<'a> {
    /// The component to serve.
    pub(super) component: &'a Inspection,
    /// The server's folder, with its data and configuration.
    pub(super) home: &'a Path,
    /// Password of the owner.
    pub(super) password: &'a str,
    /// Listen addresses for package clients and for the API.
    pub(super) listen: [String; 2],
    /// Base URL of links, if it differs from the listen address.
    pub(super) base_url: Option<&'a str>,
}

/// A running server. Dropping it stops the process.
pub(super) struct ChildServer {
    child: Child,
    lines: UnboundedReceiver<String>,
    /// Address for package clients.
    pub(super) packages: SocketAddr,
    /// Address of the API.
    pub(super) api: SocketAddr,
}

impl ChildServer {
    /// Starts the server and waits until it is ready.
    pub(super) async fn start(start: StartOptions<'_>) -> anyhow::Result<ChildServer> {
        let [packages, api] = start.listen.clone();
        let mut command = Command::new(program()?);
        for (name, _) in std::env::vars_os() {
            // Settings for the author's own server do not apply to this one.
            if name.to_string_lossy().starts_with("PACKHOUSE_") {
                command.env_remove(name);
            }
        }
        let folder = |name: &str| start.home.join(name);
        command.arg("serve").arg("--config").arg(write_files(&start)?).arg("--data").arg(folder("data"));
        command.arg("--plugins").arg(folder("plugins")).args(["--log", LOG]);
        command.args(["--packages-listen", &packages, "--api-listen", &api]);
        if let Some(base_url) = start.base_url {
            command.args(["--base-url", base_url]);
        }
        command.env("PACKHOUSE_OWNER_EMAIL", OWNER).env("PACKHOUSE_OWNER_PASSWORD", start.password);
        // The pipe closes whichever way this process ends, and the server then stops as well.
        command.arg("--until-stdin-ends").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("failed to start a server")?;
        let output = child.stderr.take().context("the server has no standard error")?;
        let (output_lines, lines) = unbounded_channel();
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                if output_lines.send(line).is_err() {
                    return;
                }
            }
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = ChildServer { child, lines, packages: nowhere, api: nowhere };
        server.wait_until_it_serves().await?;
        Ok(server)
    }

    /// Waits until the server is ready. The server logs its addresses earlier, before it compiles
    /// the component.
    async fn wait_until_it_serves(&mut self) -> anyhow::Result<()> {
        let mut before = String::new();
        while let Some(line) = self.lines.recv().await {
            let line_read = LogLine::read(&line);
            if line_read.message() == "serving"
                && let (Ok(packages), Ok(api)) =
                    (line_read.text("packages").parse(), line_read.text("api").parse())
            {
                (self.packages, self.api) = (packages, api);
            }
            if line_read.message() == "ready" {
                return Ok(());
            }
            if line_read.is_worth_reading() {
                before = format!("{before}\n{}", line_read.for_people());
            }
        }
        bail!("the server did not start: {}", before.trim_start())
    }

    /// Returns the next line of the log; None once the server has stopped.
    pub(super) async fn next_line(&mut self) -> Option<LogLine> {
        self.lines.recv().await.map(|line| LogLine::read(&line))
    }

    /// Stops the server and waits until the process has ended.
    pub(super) async fn end(mut self) {
        // The process may have ended already.
        let _ = self.child.kill().await;
    }

    /// Creates the first repository and a token for it. Returns the repository's id and the token's
    /// secret.
    pub(super) async fn create_repository(
        &self,
        password: &str,
        repository: &Value,
    ) -> anyhow::Result<(String, String)> {
        let session = self.sign_in(password).await?;
        let made = self.call(&session, "/v1/repositories", repository).await?;
        let id = text(&made, "id");
        let format = "generic";
        let token = json!({
            "name": "an author's", "scope": ["read", "write"], "format": format, "repositories": [id],
            "expires_at": null, "confirmation_token": self.confirm(&session, "create_token", password).await?,
        });
        Ok((id, text(&self.call(&session, "/v1/tokens", &token).await?, "secret")))
    }

    async fn sign_in(&self, password: &str) -> anyhow::Result<String> {
        let answer = self.call("", "/v1/sessions", &json!({"email": OWNER, "password": password})).await?;
        Ok(text(&answer, "session"))
    }

    async fn confirm(&self, session: &str, action: &str, password: &str) -> anyhow::Result<String> {
        let body = json!({"action": action, "password": password});
        Ok(text(&self.call(session, "/v1/confirmations", &body).await?, "confirmation_token"))
    }

    async fn call(&self, session: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let request = client.post(format!("http://{}{path}", self.api)).bearer_auth(session);
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.context("the server did not answer")?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "the server refused POST {path}: {text}");
        serde_json::from_str(&text).with_context(|| format!("POST {path} returned invalid JSON: {text:?}"))
    }
}

/// Writes the server's files. Returns the path of its configuration file.
fn write_files(start: &StartOptions<'_>) -> anyhow::Result<std::path::PathBuf> {
    let (home, format) = (start.home, &start.component.description.format);
    let plugins = home.join("plugins");
    let failed = || format!("failed to prepare {}", home.display());
    std::fs::create_dir_all(&plugins).with_context(failed)?;
    std::fs::copy(&start.component.file, plugins.join(format).with_added_extension("wasm"))
        .with_context(failed)?;
    let mut settings = format!("[plugins.{format}]\nwasi = {}\n", start.component.imports_wasi());
    if let Some(bytes) = start.component.memory_bytes {
        let usual = packhouse_runtime::Limits::default().memory_bytes;
        settings += &format!("memory_bytes = {}\n", usual.max(bytes));
    }
    let file = home.join("packhouse.toml");
    std::fs::write(&file, settings).with_context(failed)?;
    Ok(file)
}

fn text(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A line of the server's log.
pub(super) struct LogLine(Value);

impl LogLine {
    fn read(line: &str) -> LogLine {
        LogLine(serde_json::from_str(line).unwrap_or_else(|_| json!({"level": "ERROR", "message": line})))
    }

    /// Returns a field's text, or an empty string.
    pub(super) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns a field, or null.
    pub(super) fn field(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// Returns the log message.
    pub(super) fn message(&self) -> &str {
        self.text("message")
    }

    /// Returns the log target, such as `packhouse::access`.
    pub(super) fn target(&self) -> &str {
        self.text("target")
    }

    /// Returns true for warnings, errors and the plugin's own output.
    pub(super) fn is_worth_reading(&self) -> bool {
        matches!(self.text("level"), "ERROR" | "WARN") || self.target() == "packhouse::plugin"
    }

    /// Formats the line for people.
    pub(super) fn for_people(&self) -> String {
        let more = ["error", "fields"].map(|name| self.text(name)).join(" ");
        format!("{} {} {more}", self.text("level").to_lowercase(), self.message()).trim_end().to_owned()
    }
}
