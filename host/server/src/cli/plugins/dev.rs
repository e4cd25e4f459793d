//! `packhouse plugins dev`: runs a server with the project's component, and rebuilds and reloads it
//! whenever the project changes. For each request it prints the intent, the status, the duration,
//! the records that were read and written, and the plugin's output.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use packhouse_identity::random_password;
use packhouse_runtime::{Inspection, inspect};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::child_server::{ChildServer, LogLine, OWNER, StartOptions};
use super::project::component;
use crate::cli::print;

/// How often the project is checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(300);
/// Folders with generated files, which are not watched.
const GENERATED: [&str; 4] = ["target", "node_modules", "__pycache__", "wit_world"];
/// File beside the data with the owner's password and the token, so that a data folder can be used
/// again.
const LOGIN_FILE: &str = "dev.json";

/// Serves until it is interrupted. Data in `home` persist; without `home` they are deleted at the
/// end.
pub(super) async fn dev(
    folder: PathBuf,
    home: Option<PathBuf>,
    packages: String,
    api: String,
) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir().context("failed to create a temporary folder")?;
    let home = home.unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&home).with_context(|| format!("failed to create {}", home.display()))?;
    let (mut interrupted, mut terminated) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let requests = HashMap::new();
    let mut session = DevSession { folder, home, listen: [packages, api], served: None, requests };
    let files = ProjectFiles::new(&session);
    let mut last = files.newest(&session.folder);
    let mut server = session.start().await.map(Some)?;
    let mut checks = tokio::time::interval(CHECK_INTERVAL);
    loop {
        tokio::select! {
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
            line = next_log_line(&mut server) => match line {
                Some(line) => session.print_line(line)?,
                None => {
                    print("the server stopped; it restarts when the project changes")?;
                    server = None;
                }
            },
            _ = checks.tick() => {
                let now = files.newest(&session.folder);
                if now != last {
                    last = now;
                    session.restart(&mut server).await?;
                }
            }
        }
    }
    if let Some(server) = server {
        server.end().await;
    }
    Ok(())
}

/// Returns the next line of the server's log. Waits forever if there is no server.
async fn next_log_line(server: &mut Option<ChildServer>) -> Option<LogLine> {
    match server {
        Some(server) => server.next_line().await,
        None => std::future::pending().await,
    }
}

struct DevSession {
    folder: PathBuf,
    home: PathBuf,
    listen: [String; 2],
    /// Modification time of the component that is served.
    served: Option<SystemTime>,
    /// Requests without a response so far, by id.
    requests: HashMap<String, PendingRequest>,
}

/// Log entries about a request without a response so far.
#[derive(Default)]
struct PendingRequest {
    /// The action that `route` returned.
    intent: Option<String>,
    /// Record accesses in order: the operation, such as `read`, and the key.
    records: Vec<(String, String)>,
    refusal: Option<String>,
}

/// Maximum number of keys to print for each operation of a request. If there are more, only the
/// number of further keys is printed.
const MAX_LISTED_KEYS: usize = 12;

impl PendingRequest {
    /// Adds a record access. Repeated accesses are listed once.
    fn note(&mut self, done: &str, key: &str) {
        // For ranges, the key is a prefix.
        let key = if matches!(done, "scanned" | "listed") { format!("{key}*") } else { key.to_owned() };
        let note = (done.to_owned(), key);
        if !self.records.contains(&note) {
            self.records.push(note);
        }
    }

    /// Formats the accesses as `  read a, b` and `  wrote c` on separate lines, followed by the
    /// refusal code. Empty if there is nothing to print. Writes of a request that `failed` are left
    /// out, because they were not committed.
    fn describe(&self, failed: bool) -> String {
        let mut text = String::new();
        let operations = ["read", "scanned", "listed", "wrote", "removed"];
        for done in operations.into_iter().take(if failed { 3 } else { 5 }) {
            let mut keys = self.records.iter().filter(|(what, _)| what == done).map(|(_, key)| key.as_str());
            let listed: Vec<&str> = keys.by_ref().take(MAX_LISTED_KEYS).collect();
            if listed.is_empty() {
                continue;
            }
            text += &format!("\n    {done} {}", listed.join(", "));
            match keys.count() {
                0 => {}
                more => text += &format!(" and {more} more"),
            }
        }
        if let Some(code) = &self.refusal {
            text += &format!("\n    {code}");
        }
        text
    }
}

impl DevSession {
    /// Builds the component and starts the server.
    async fn start(&mut self) -> anyhow::Result<ChildServer> {
        let found = self.built().await?;
        self.serve(&found).await
    }

    /// Rebuilds the component and restarts the server. If the build fails, the current server keeps
    /// running.
    async fn restart(&mut self, server: &mut Option<ChildServer>) -> anyhow::Result<()> {
        let found = match self.built().await {
            Ok(found) => found,
            Err(error) => return print(&format!("{error:#}\nthe previous build is still served")),
        };
        if server.is_some() && made_at(&found) == self.served {
            return Ok(());
        }
        if let Some(before) = server.take() {
            before.end().await;
        }
        match self.serve(&found).await {
            Ok(started) => *server = Some(started),
            Err(error) => print(&format!("{error:#}"))?,
        }
        Ok(())
    }

    async fn built(&self) -> anyhow::Result<Inspection> {
        let file = component(self.folder.clone(), None).await?;
        Ok(tokio::task::spawn_blocking(move || inspect(&file)).await??)
    }

    async fn serve(&mut self, found: &Inspection) -> anyhow::Result<ChildServer> {
        let saved = self.saved_login();
        let password = match &saved {
            Some((password, _)) => password.clone(),
            None => random_password().reveal().to_owned(),
        };
        let (home, listen) = (self.home.as_path(), self.listen.clone());
        let start = StartOptions { component: found, home, password: &password, listen, base_url: None };
        let server = ChildServer::start(start).await?;
        self.served = made_at(found);
        self.listen = [server.packages.to_string(), server.api.to_string()];
        let format = &found.description.format;
        if saved.is_some() {
            print(&format!("serving {format} {}", found.description.version))?;
            return Ok(server);
        }
        let body = json!({"name": format, "format": format, "kind": "hosted"});
        let (_, token) = server.create_repository(&password, &body).await?;
        let text = json!({"password": password, "token": token}).to_string();
        let mut saved = std::fs::OpenOptions::new();
        let saved = saved.write(true).create(true).truncate(true).mode(0o600).open(home.join(LOGIN_FILE));
        saved
            .and_then(|mut saved| saved.write_all(text.as_bytes()))
            .context("failed to save the password")?;
        let (version, packages, api) = (&found.description.version, server.packages, server.api);
        print(&format!(
            "serving {format} {version} at http://{packages}/repositories/{format}/\n    \
             curl --user {OWNER}:{token} --upload-file FILE http://{packages}/repositories/{format}/FILE\n\
             portal   http://{api}/ as {OWNER} with {password}"
        ))?;
        Ok(server)
    }

    fn saved_login(&self) -> Option<(String, String)> {
        let text = std::fs::read_to_string(self.home.join(LOGIN_FILE)).ok()?;
        let saved: serde_json::Value = serde_json::from_str(&text).ok()?;
        let field = |name: &str| saved.get(name)?.as_str().map(str::to_owned);
        Some((field("password")?, field("token")?))
    }

    /// Prints what a log line means for the author.
    fn print_line(&mut self, line: LogLine) -> anyhow::Result<()> {
        let id = line.text("request_id").to_owned();
        match line.target() {
            "packhouse::intent" => {
                self.requests.entry(id).or_default().intent = Some(line.text("action").to_lowercase());
                Ok(())
            }
            "packhouse::records" => {
                self.requests.entry(id).or_default().note(line.text("done"), line.text("key"));
                Ok(())
            }
            "packhouse::refusal" => {
                self.requests.entry(id).or_default().refusal = Some(line.text("code").to_owned());
                Ok(())
            }
            "packhouse::access" => {
                let known = self.requests.remove(&id).unwrap_or_default();
                let intent = known.intent.as_deref().unwrap_or("-");
                let ms = line.field("ms").as_f64().unwrap_or_default();
                let (method, path) = (line.text("method"), line.text("path"));
                let status = line.field("status");
                let records = known.describe(status.as_u64().is_none_or(|status| status >= 400));
                print(&format!("{method} {path} {status} ({intent}) {ms:.1} ms{records}"))
            }
            _ if line.is_worth_reading() => print(&format!("  {}", line.for_people())),
            _ => Ok(()),
        }
    }
}

/// Returns the component's modification time. A build with an unchanged result does not write the
/// file again.
fn made_at(found: &Inspection) -> Option<SystemTime> {
    std::fs::metadata(&found.file).and_then(|file| file.modified()).ok()
}

/// Decides which files of the project folder are the author's.
struct ProjectFiles {
    home: Option<PathBuf>,
    /// Device and inode numbers of the files that receive this program's output.
    output: Vec<(u64, u64)>,
}

impl ProjectFiles {
    fn new(session: &DevSession) -> ProjectFiles {
        let output = ["/proc/self/fd/1", "/proc/self/fd/2"].iter();
        let output = output.filter_map(|path| std::fs::metadata(path).ok()).map(|file| number(&file));
        ProjectFiles { home: session.home.canonicalize().ok(), output: output.collect() }
    }

    /// Returns the newest modification time in the project and the number of its files.
    fn newest(&self, folder: &Path) -> (SystemTime, usize) {
        let mut newest = (SystemTime::UNIX_EPOCH, 0);
        let Ok(entries) = std::fs::read_dir(folder) else { return newest };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(found) = entry.metadata() else { continue };
            if name.starts_with('.') || GENERATED.contains(&&*name) || self.is_own(&entry.path(), &found) {
                continue;
            }
            let below = if found.is_dir() {
                self.newest(&entry.path())
            } else {
                (found.modified().unwrap_or(newest.0), 1)
            };
            newest = (newest.0.max(below.0), newest.1 + below.1);
        }
        newest
    }

    /// Returns true if this program writes the file or folder.
    fn is_own(&self, path: &Path, found: &Metadata) -> bool {
        if found.is_dir() {
            return self.home.is_some() && path.canonicalize().ok() == self.home;
        }
        self.output.contains(&number(found))
    }
}

fn number(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_failed_wrote_nothing_and_its_code_comes_last() {
        let mut known = PendingRequest { refusal: Some("not_found".to_owned()), ..PendingRequest::default() };
        known.note("removed", "file/a");
        known.note("read", "file/a");
        assert_eq!(known.describe(true), "\n    read file/a\n    not_found");
        known.refusal = None;
        assert_eq!(known.describe(false), "\n    read file/a\n    removed file/a");
    }

    #[test]
    fn the_programs_own_files_are_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lib.rs", "dev.log"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("kept")).unwrap();
        std::fs::write(folder.path().join("kept/packhouse.db"), "x").unwrap();
        let log = std::fs::metadata(folder.path().join("dev.log")).unwrap();
        let home = folder.path().join("kept").canonicalize().ok();
        let files = ProjectFiles { home, output: vec![number(&log)] };
        assert_eq!(files.newest(folder.path()).1, 1);
    }
}
