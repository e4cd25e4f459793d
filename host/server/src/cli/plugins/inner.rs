//! A whole server of this very program with one component, in a process of its own: what `plugins test` and `plugins dev` ask. It is used
//! as any client uses a server, by its two addresses, and heard by its log.

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

/// What is logged besides what is logged anyway: what requests would do, which records they read and write, and refusals by their
/// codes.
const LOG: &str =
    "info,packhouse::intent=debug,packhouse::records=debug,packhouse::refusal=debug,packhouse::plugin=trace";
/// Who owns everything in it.
pub(super) const OWNER: &str = "owner@localhost";

/// How it is started.
pub(super) struct Start<'a> {
    /// The component, by what is known of it.
    pub(super) component: &'a Inspection,
    /// Its data; what lies beside them in the same folder is its as well.
    pub(super) home: &'a Path,
    /// The owner's password.
    pub(super) password: &'a str,
    /// Where clients connect, and where the API listens.
    pub(super) listen: [String; 2],
    /// What links begin with, if it is not where clients connect.
    pub(super) base_url: Option<&'a str>,
}

/// The running server. It ends when this goes.
pub(super) struct Inner {
    child: Child,
    lines: UnboundedReceiver<String>,
    /// Where clients connect.
    pub(super) packages: SocketAddr,
    /// Where the API listens.
    pub(super) api: SocketAddr,
}

impl Inner {
    /// Starts it, and waits until it serves.
    pub(super) async fn start(start: Start<'_>) -> anyhow::Result<Inner> {
        let [packages, api] = start.listen.clone();
        let mut command = Command::new(program()?);
        for (name, _) in std::env::vars_os() {
            // What is set for a server of the author's is not for this one.
            if name.to_string_lossy().starts_with("PACKHOUSE_") {
                command.env_remove(name);
            }
        }
        let folder = |name: &str| start.home.join(name);
        command.arg("serve").arg("--config").arg(lay_out(&start)?).arg("--data").arg(folder("data"));
        command.arg("--plugins").arg(folder("plugins")).args(["--log", LOG]);
        command.args(["--packages-listen", &packages, "--api-listen", &api]);
        if let Some(base_url) = start.base_url {
            command.args(["--base-url", base_url]);
        }
        command.env("PACKHOUSE_OWNER_EMAIL", OWNER).env("PACKHOUSE_OWNER_PASSWORD", start.password);
        // However this process ends, its end of the pipe is closed then, and the server ends too.
        command.arg("--until-stdin-ends").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("failed to start a server")?;
        let output = child.stderr.take().context("the server says nothing")?;
        let (said, lines) = unbounded_channel();
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut inner = Inner { child, lines, packages: nowhere, api: nowhere };
        inner.wait_until_it_serves().await?;
        Ok(inner)
    }

    /// It says where it listens before its component is compiled, and then that it is ready.
    async fn wait_until_it_serves(&mut self) -> anyhow::Result<()> {
        let mut before = String::new();
        while let Some(line) = self.lines.recv().await {
            let heard = Heard::read(&line);
            if heard.message() == "serving"
                && let (Ok(packages), Ok(api)) = (heard.text("packages").parse(), heard.text("api").parse())
            {
                (self.packages, self.api) = (packages, api);
            }
            if heard.message() == "ready" {
                return Ok(());
            }
            if heard.is_worth_reading() {
                before = format!("{before}\n{}", heard.for_people());
            }
        }
        bail!("the server did not start: {}", before.trim_start())
    }

    /// The next line of its log; none once it ended.
    pub(super) async fn hear(&mut self) -> Option<Heard> {
        self.lines.recv().await.map(|line| Heard::read(&line))
    }

    /// Ends it, and waits until it is gone.
    pub(super) async fn end(mut self) {
        // What has ended already need not be ended.
        let _ = self.child.kill().await;
    }

    /// Makes the first repository and a token for it; answers the repository's id and the token's secret.
    pub(super) async fn furnish(
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
        let answer = request.send().await.context("the server does not answer")?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "the server refused POST {path}: {text}");
        serde_json::from_str(&text).with_context(|| format!("POST {path} was answered {text:?}"))
    }
}

/// Lays out what it needs, and answers its configuration file.
fn lay_out(start: &Start<'_>) -> anyhow::Result<std::path::PathBuf> {
    let (home, format) = (start.home, &start.component.description.format);
    let plugins = home.join("plugins");
    let said = || format!("failed to lay out {}", home.display());
    std::fs::create_dir_all(&plugins).with_context(said)?;
    std::fs::copy(&start.component.file, plugins.join(format).with_added_extension("wasm"))
        .with_context(said)?;
    let mut settings = format!("[plugins.{format}]\nwasi = {}\n", start.component.imports_wasi());
    if let Some(bytes) = start.component.memory_bytes {
        let usual = packhouse_runtime::Limits::default().memory_bytes;
        settings += &format!("memory_bytes = {}\n", usual.max(bytes));
    }
    let file = home.join("packhouse.toml");
    std::fs::write(&file, settings).with_context(said)?;
    Ok(file)
}

fn text(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A line of its log.
pub(super) struct Heard(Value);

impl Heard {
    fn read(line: &str) -> Heard {
        Heard(serde_json::from_str(line).unwrap_or_else(|_| json!({"level": "ERROR", "message": line})))
    }

    /// A field's text; empty where there is none.
    pub(super) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field as it stands.
    pub(super) fn field(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// What it says.
    pub(super) fn message(&self) -> &str {
        self.text("message")
    }

    /// Whose line it is, as `packhouse::access`.
    pub(super) fn target(&self) -> &str {
        self.text("target")
    }

    /// Whether it is of a fault, or what a plugin says.
    pub(super) fn is_worth_reading(&self) -> bool {
        matches!(self.text("level"), "ERROR" | "WARN") || self.target() == "packhouse::plugin"
    }

    /// In a line for people.
    pub(super) fn for_people(&self) -> String {
        let more = ["error", "fields"].map(|name| self.text(name)).join(" ");
        format!("{} {} {more}", self.text("level").to_lowercase(), self.message()).trim_end().to_owned()
    }
}
