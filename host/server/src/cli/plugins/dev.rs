//! `packhouse plugins dev`: a server with the project's component, which is built and loaded anew when something of the project
//! changes. Each request is told with what it would do, its status and its time, with the records that it read and wrote, and with what
//! the plugin said.

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

use super::inner::{Heard, Inner, OWNER, Start};
use super::project::component;
use crate::cli::print;

/// How often the project is looked at.
const LOOK: Duration = Duration::from_millis(300);
/// Folders whose files are made, and not written by the author.
const MADE: [&str; 4] = ["target", "node_modules", "__pycache__", "wit_world"];
/// The file beside the data that keeps the owner's password and the token, so that a data folder can be used again.
const KEPT: &str = "dev.json";

/// Serves until it is told to stop. `home` is kept; without it all is forgotten in the end.
pub(super) async fn dev(
    folder: PathBuf,
    home: Option<PathBuf>,
    packages: String,
    api: String,
) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir().context("failed to make a temporary folder")?;
    let home = home.unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&home).with_context(|| format!("failed to make {}", home.display()))?;
    let (mut interrupted, mut terminated) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let requests = HashMap::new();
    let mut bench = Bench { folder, home, listen: [packages, api], served: None, requests };
    let watched = Watched::new(&bench);
    let mut seen = watched.newest(&bench.folder);
    let mut inner = bench.start().await.map(Some)?;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
            line = hear(&mut inner) => match line {
                Some(line) => bench.tell(line)?,
                None => {
                    print("the server ended; it starts again when something changes")?;
                    inner = None;
                }
            },
            _ = look.tick() => {
                let now = watched.newest(&bench.folder);
                if now != seen {
                    seen = now;
                    bench.start_anew(&mut inner).await?;
                }
            }
        }
    }
    if let Some(inner) = inner {
        inner.end().await;
    }
    Ok(())
}

/// The next line of the server's log; waits for ever where there is none.
async fn hear(inner: &mut Option<Inner>) -> Option<Heard> {
    match inner {
        Some(inner) => inner.hear().await,
        None => std::future::pending().await,
    }
}

struct Bench {
    folder: PathBuf,
    home: PathBuf,
    listen: [String; 2],
    /// When the component that is served was made.
    served: Option<SystemTime>,
    /// What is known of requests, by their ids, until they are answered.
    requests: HashMap<String, Known>,
}

/// What is known of a request that is not answered.
#[derive(Default)]
struct Known {
    /// What it would do.
    intent: Option<String>,
    /// What it did with records, in that order: as `read` and a key.
    records: Vec<(String, String)>,
    /// The code with which it was refused.
    refusal: Option<String>,
}

/// Keys of a kind that are told of one request; of the rest, how many.
const KEYS_TOLD: usize = 12;

impl Known {
    /// Notes what was done with a record. What is done again in the same way is told once.
    fn note(&mut self, done: &str, key: &str) {
        // Ranges are told by what their keys begin with.
        let key = if matches!(done, "scanned" | "listed") { format!("{key}*") } else { key.to_owned() };
        let note = (done.to_owned(), key);
        if !self.records.contains(&note) {
            self.records.push(note);
        }
    }

    /// As `  read a, b` and `  wrote c`, each on a line, and the code of a refusal; nothing where there is nothing to tell. A request that
    /// `failed` has changed nothing.
    fn told(&self, failed: bool) -> String {
        let mut text = String::new();
        let told = ["read", "scanned", "listed", "wrote", "removed"];
        for done in told.into_iter().take(if failed { 3 } else { 5 }) {
            let mut keys = self.records.iter().filter(|(what, _)| what == done).map(|(_, key)| key.as_str());
            let told: Vec<&str> = keys.by_ref().take(KEYS_TOLD).collect();
            if told.is_empty() {
                continue;
            }
            text += &format!("\n    {done} {}", told.join(", "));
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

impl Bench {
    /// Builds and serves.
    async fn start(&mut self) -> anyhow::Result<Inner> {
        let found = self.built().await?;
        self.serve(&found).await
    }

    /// The same in place of what is served; what cannot be built takes nobody's place.
    async fn start_anew(&mut self, inner: &mut Option<Inner>) -> anyhow::Result<()> {
        let found = match self.built().await {
            Ok(found) => found,
            Err(error) => return print(&format!("{error:#}\nwhat was built before is served on")),
        };
        if inner.is_some() && made_at(&found) == self.served {
            return Ok(());
        }
        if let Some(before) = inner.take() {
            before.end().await;
        }
        match self.serve(&found).await {
            Ok(started) => *inner = Some(started),
            Err(error) => print(&format!("{error:#}"))?,
        }
        Ok(())
    }

    async fn built(&self) -> anyhow::Result<Inspection> {
        let file = component(self.folder.clone(), None).await?;
        Ok(tokio::task::spawn_blocking(move || inspect(&file)).await??)
    }

    async fn serve(&mut self, found: &Inspection) -> anyhow::Result<Inner> {
        let kept = self.kept();
        let password = match &kept {
            Some((password, _)) => password.clone(),
            None => random_password().reveal().to_owned(),
        };
        let (home, listen) = (self.home.as_path(), self.listen.clone());
        let start = Start { component: found, home, password: &password, listen, base_url: None };
        let inner = Inner::start(start).await?;
        self.served = made_at(found);
        self.listen = [inner.packages.to_string(), inner.api.to_string()];
        let format = &found.description.format;
        if kept.is_some() {
            print(&format!("{format} {} is served", found.description.version))?;
            return Ok(inner);
        }
        let body = json!({"name": format, "format": format, "kind": "hosted"});
        let (_, token) = inner.furnish(&password, &body).await?;
        let text = json!({"password": password, "token": token}).to_string();
        let mut kept = std::fs::OpenOptions::new();
        let kept = kept.write(true).create(true).truncate(true).mode(0o600).open(home.join(KEPT));
        kept.and_then(|mut kept| kept.write_all(text.as_bytes())).context("failed to keep the password")?;
        let (version, packages, api) = (&found.description.version, inner.packages, inner.api);
        print(&format!(
            "{format} {version} is served at http://{packages}/repositories/{format}/\n    \
             curl --user {OWNER}:{token} --upload-file FILE http://{packages}/repositories/{format}/FILE\n\
             portal   http://{api}/ as {OWNER} with {password}"
        ))?;
        Ok(inner)
    }

    fn kept(&self) -> Option<(String, String)> {
        let text = std::fs::read_to_string(self.home.join(KEPT)).ok()?;
        let kept: serde_json::Value = serde_json::from_str(&text).ok()?;
        let field = |name: &str| kept.get(name)?.as_str().map(str::to_owned);
        Some((field("password")?, field("token")?))
    }

    /// Tells of a line what an author wants to know.
    fn tell(&mut self, line: Heard) -> anyhow::Result<()> {
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
                let records = known.told(status.as_u64().is_none_or(|status| status >= 400));
                print(&format!("{method} {path} {status} ({intent}) {ms:.1} ms{records}"))
            }
            _ if line.is_worth_reading() => print(&format!("  {}", line.for_people())),
            _ => Ok(()),
        }
    }
}

/// A component that comes out the same is not written anew.
fn made_at(found: &Inspection) -> Option<SystemTime> {
    std::fs::metadata(&found.file).and_then(|file| file.modified()).ok()
}

/// What of a project's folder is not the author's work.
struct Watched {
    /// Where the server keeps its data.
    home: Option<PathBuf>,
    /// Device and number of the files to which this program writes what it says.
    output: Vec<(u64, u64)>,
}

impl Watched {
    fn new(bench: &Bench) -> Watched {
        let output = ["/proc/self/fd/1", "/proc/self/fd/2"].iter();
        let output = output.filter_map(|path| std::fs::metadata(path).ok()).map(|file| number(&file));
        Watched { home: bench.home.canonicalize().ok(), output: output.collect() }
    }

    /// When something of the project was last written, and how much there is.
    fn newest(&self, folder: &Path) -> (SystemTime, usize) {
        let mut newest = (SystemTime::UNIX_EPOCH, 0);
        let Ok(entries) = std::fs::read_dir(folder) else { return newest };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(found) = entry.metadata() else { continue };
            if name.starts_with('.') || MADE.contains(&&*name) || self.is_own(&entry.path(), &found) {
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

    /// Whether this program writes it.
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
        let mut known = Known { refusal: Some("not_found".to_owned()), ..Known::default() };
        known.note("removed", "file/a");
        known.note("read", "file/a");
        assert_eq!(known.told(true), "\n    read file/a\n    not_found");
        known.refusal = None;
        assert_eq!(known.told(false), "\n    read file/a\n    removed file/a");
    }

    #[test]
    fn what_the_program_writes_itself_is_no_work_of_the_author() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lib.rs", "dev.log"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("kept")).unwrap();
        std::fs::write(folder.path().join("kept/packhouse.db"), "x").unwrap();
        let log = std::fs::metadata(folder.path().join("dev.log")).unwrap();
        let home = folder.path().join("kept").canonicalize().ok();
        let watched = Watched { home, output: vec![number(&log)] };
        assert_eq!(watched.newest(folder.path()).1, 1);
    }
}
