//! A plugin over its own store, called as the server calls it: route, check, receive, handle.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use packhouse_runtime::{
    Action, Answer, BodyPlan, Call, CallError, Content, Failure, Limits, Plugin, RepositoryView, RequestHead,
    Routed, Runtime, RuntimeConfig, Services,
};
use packhouse_store::{
    BlobsConfig, NewOrganization, NewRepository, OrganizationId, Sha256, Store, StoreConfig,
};
use tempfile::TempDir;
use tracing::subscriber::DefaultGuard;

/// The outcome of a request.
pub(crate) type CallOutcome = Result<Result<Answer, Failure>, CallError>;

/// The path of the built guest.
pub(crate) fn hostile() -> PathBuf {
    let file = packhouse_tests::checkout().join("target/release/guests/hostile.wasm");
    assert!(file.exists(), "{} is missing: build it with `cargo run -p xtask -- guests`", file.display());
    file
}

/// A folder that holds these files as plugins.
pub(crate) fn plugin_folder(files: &[(&str, &Path)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, file) in files {
        std::fs::copy(file, folder.path().join(name)).expect("the plugin can be copied");
    }
    folder
}

/// A store in a folder of its own, in which every blob is a file.
pub(crate) async fn store(folder: &Path) -> Store {
    let config =
        StoreConfig { blobs: BlobsConfig::Fs(folder.to_owned()), inline_max: 0, ..StoreConfig::new(folder) };
    Store::open(config).await.expect("the store opens")
}

/// The hostile plugin over a store with two repositories.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) repository: RepositoryView,
    pub(crate) other: RepositoryView,
    pub(crate) log: Log,
    pub(crate) services: Services,
    folder: TempDir,
}

/// Limits that a test reaches quickly.
pub(crate) fn tight() -> Limits {
    Limits {
        call_timeout: Duration::from_secs(1),
        concurrency: 4,
        written_bytes: 20 << 20,
        ..Limits::default()
    }
}

impl World {
    pub(crate) async fn new(limits: Limits) -> World {
        let log = Log::capture();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = store(folder.path()).await;
        let plugins = plugin_folder(&[("hostile.wasm", &hostile())]);
        let config = RuntimeConfig {
            plugins: plugins.path().to_owned(),
            default_limits: limits,
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::load(config, store.clone()).await.expect("the plugin loads");
        let plugin = runtime.plugin("hostile").expect("the format's plugin is loaded");
        let organization = organization(&store).await;
        let repository = repository(&store, organization, "mine").await;
        let other = repository_with_a_file(&store, organization, "other").await;
        World { store, plugin, repository, other, log, services: Services::default(), folder }
    }

    /// A request without a body.
    pub(crate) async fn get(&self, path: &str) -> CallOutcome {
        self.send("GET", path, None).await
    }

    /// A request with a body.
    pub(crate) async fn put(&self, path: &str, body: &[u8]) -> CallOutcome {
        self.send("PUT", path, Some(body)).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> CallOutcome {
        let head = head(method, path);
        let Routed { intent, instance } =
            match self.plugin.route_to_handle(&self.repository.kind, &head).await? {
                Ok(routed) => routed,
                Err(failure) => return Ok(Err(failure)),
            };
        let mut call = self.call(&head, intent.action);
        if intent.check
            && let Err(failure) = self.plugin.check(call.clone()).await?
        {
            return Ok(Err(failure));
        }
        if let (BodyPlan::Body { limit }, Some(body)) = (&intent.body, body) {
            let mut stager = self.store.stage(&intent.digests, *limit);
            stager.write(Bytes::copy_from_slice(body)).await?;
            call.body = Some(stager.finish().await?);
        }
        match instance {
            Some(instance) => instance.handle(call).await,
            None => self.plugin.handle(call).await,
        }
    }

    /// The call for this request.
    pub(crate) fn call(&self, head: &Arc<RequestHead>, action: Action) -> Call {
        let mut call = Call::new(Arc::clone(head), action);
        call.target = Some(self.repository.clone());
        call.others = vec![self.other.clone()];
        call.services = self.services.clone();
        call
    }

    /// Lists everything in storage: records and published packages of both repositories, and the
    /// files of blobs.
    pub(crate) async fn stored(&self) -> Vec<String> {
        let mut stored = Vec::new();
        for repository in [&self.repository, &self.other] {
            for entry in self.store.scan(repository.id, "", None, 1_000).await.expect("records can be read") {
                stored.push(format!("{} {entry:?}", repository.name));
            }
            let packages =
                self.store.search(repository.id, "", 0, 250).await.expect("the packages can be read");
            stored.push(format!("{} {packages:?}", repository.name));
        }
        let mut files = Vec::new();
        list(&self.folder.path().join("blobs"), &mut files);
        files.sort();
        stored.extend(files);
        stored
    }

    /// Asserts that the plugin still answers.
    pub(crate) async fn still_answers(&self) {
        assert_eq!(self.text("ok").await, "ok");
    }

    /// The text of the answer to a GET.
    pub(crate) async fn text(&self, path: &str) -> String {
        let answer =
            self.get(path).await.expect("the call does not trap").expect("the plugin did not refuse");
        String::from_utf8(content(answer).await).expect("it is text")
    }
}

/// A request of the user `ada`.
pub(crate) fn head(method: &str, path: &str) -> Arc<RequestHead> {
    Arc::new(RequestHead {
        method: method.to_owned(),
        path: path.split('/').map(str::to_owned).collect(),
        caller: Some("ada".into()),
        request_id: format!("request-{path}").into(),
        ..RequestHead::default()
    })
}

/// The bytes of an answer.
pub(crate) async fn content(answer: Answer) -> Vec<u8> {
    match answer.content {
        Content::None => Vec::new(),
        Content::Inline(bytes) => bytes.to_vec(),
        Content::Joined(joined) => joined.concat().to_vec(),
        Content::Arriving(_) => panic!("nothing arrives here"),
        Content::Blob(blob) => {
            let mut stream = blob.stream(0..blob.size());
            let mut bytes = Vec::new();
            while let Some(piece) = stream.next().await {
                bytes.extend(piece.expect("the blob can be read"));
            }
            bytes
        }
    }
}

/// The digest in the form `sha256:…`, as a plugin answers it.
pub(crate) fn sha256(digest: &str) -> Sha256 {
    digest.strip_prefix("sha256:").and_then(|hex| hex.parse().ok()).expect("it is a SHA-256")
}

async fn organization(store: &Store) -> OrganizationId {
    let named = NewOrganization { name: "acme".to_owned(), base_url: None, host: None };
    let made = store.create_organization(named, None).await.expect("the store works");
    made.expect("the name is free").id
}

async fn repository(store: &Store, organization: OrganizationId, name: &str) -> RepositoryView {
    let row = NewRepository {
        name: name.to_owned(),
        format: "hostile".to_owned(),
        kind: "hosted".to_owned(),
        public: false,
        settings: "{}".to_owned(),
        upstream: None,
        members: Vec::new(),
    };
    let made = store.create_repository(organization, row, None).await.expect("the store works");
    let made = made.expect("the name is free");
    RepositoryView {
        id: made.id,
        revision: made.revision,
        name: made.name.into(),
        kind: made.kind.into(),
        settings: "{}".into(),
    }
}

/// A repository with the record `secret`, which refers to a blob of these bytes.
async fn repository_with_a_file(store: &Store, organization: OrganizationId, name: &str) -> RepositoryView {
    use packhouse_store::{Change, Commit, Expectation};
    let view = repository(store, organization, name).await;
    let mut stager = store.stage(&[], 1 << 20);
    stager.write(Bytes::from_static(SECRET)).await.expect("bytes can be staged");
    let blob = stager.finish().await.expect("the blob can be made");
    let sha256 = blob.sha256().await.expect("it has a digest");
    let value = Bytes::from(sha256.to_string());
    let put =
        Change::Put { key: "secret".to_owned(), value, expect: Expectation::Absent, blobs: vec![sha256] };
    let commit = Commit { changes: vec![put], keeps: vec![blob], ..Commit::default() };
    store.commit(view.id, commit).await.expect("the store works");
    view
}

/// The content of the other repository's file.
pub(crate) const SECRET: &[u8] = b"for members of the other repository";

fn list(folder: &Path, files: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path.display().to_string());
        }
    }
}

/// The log lines of this test.
#[derive(Clone)]
pub(crate) struct Log(
    Arc<Mutex<Vec<u8>>>,
    #[allow(dead_code, reason = "captures until dropped")] Arc<DefaultGuard>,
);

impl Log {
    fn capture() -> Log {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .with_writer(move || Sink(Arc::clone(&sink)))
            .finish();
        Log(lines, Arc::new(tracing::subscriber::set_default(subscriber)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no writer panicked")).into_owned()
    }

    /// Asserts that one line contains all of these parts.
    pub(crate) fn has(&self, parts: &[&str]) {
        let text = self.text();
        let found = text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "no line of the log has {parts:?}:\n{text}");
    }
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
