//! A recorded call is replayed on three components. The first is the recorded component, which has
//! a bug. The second has no bug, and the third calls other functions of the host. All three are the
//! guest `ledger`; a digit in its bytes selects the variant.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use packhouse_runtime::{
    Action, Armed, BodyPlan, Call, Difference, Fetch, IdentityService, Limits, Login, LoginState, Plugin,
    PluginConfig, PublicKey, RecordedAnswer, RecordedFailure, Recorder, Recording, Replayed, Reply,
    RepositoryView, RequestHead, Routed, Runtime, RuntimeConfig, ServiceError, ServiceFuture, Services,
    Signature, SigningService, TokenView, UpstreamService, VersionState, replay,
};
use packhouse_store::{Arriving, Digest, NewOrganization, NewRepository, Store, StoreConfig};
use serde_json::json;
use tempfile::TempDir;

const MARK: &[u8] = b"ledger variant 0";

/// Writes the component with this digit to the folder; returns its path.
fn component(folder: &TempDir, variant: u8) -> PathBuf {
    let file = packhouse_tests::checkout().join("target/release/guests/ledger.wasm");
    let mut bytes = std::fs::read(&file).expect("the guest is built: `cargo run -p xtask -- guests`");
    let places: Vec<usize> =
        bytes.windows(MARK.len()).enumerate().filter(|(_, at)| *at == MARK).map(|(at, _)| at).collect();
    let [place] = places.as_slice() else { panic!("the mark stands {} times", places.len()) };
    bytes[place + MARK.len() - 1] = variant;
    let file = folder.path().join(format!("{}.wasm", char::from(variant)));
    std::fs::write(&file, bytes).unwrap();
    file
}

struct World {
    plugin: Arc<Plugin>,
    store: Store,
    view: RepositoryView,
    recorder: Recorder,
    services: Services,
    components: TempDir,
    _runtime: Runtime,
    _home: TempDir,
}

impl World {
    /// Records all calls, or only those that fail.
    async fn new(only_failures: bool) -> World {
        let (home, components, plugins) =
            (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
        std::fs::copy(component(&components, b'0'), plugins.path().join("ledger.wasm")).unwrap();
        let store = Store::open(StoreConfig::new(home.path())).await.unwrap();
        let config = RuntimeConfig {
            plugins: plugins.path().to_owned(),
            default_limits: Limits { call_timeout: Duration::from_secs(2), ..Limits::default() },
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::load(config, store.clone()).await.unwrap();
        let recorder = runtime.recorder().clone();
        let plugin = runtime.plugin("ledger").unwrap();
        let view = repository(&store).await;
        recorder.arm(vec![Armed { set: 7, repository: view.id, count: 1_000, only_failures }]);
        let services = Services::default();
        World { plugin, store, view, recorder, services, components, _runtime: runtime, _home: home }
    }

    /// Sends a request; returns true if it was answered.
    async fn send(&self, method: &str, path: &str, body: &str) -> bool {
        let head = Arc::new(RequestHead {
            method: method.to_owned(),
            path: path.split('/').map(str::to_owned).collect(),
            request_id: "request".into(),
            repository: Some(self.view.id),
            ..RequestHead::default()
        });
        let Ok(routed) = self.plugin.route_to_handle("hosted", &head).await else { return false };
        let Routed { intent, instance } = routed.expect("the route was not refused");
        let mut call = Call::new(head, intent.action);
        (call.target, call.services) = (Some(self.view.clone()), self.services.clone());
        if let BodyPlan::Body { limit } = intent.body {
            let mut stager = self.store.stage(&[], limit);
            stager.write(Bytes::from(body.to_owned())).await.unwrap();
            call.body = Some(stager.finish().await.unwrap());
        }
        let handled = match instance {
            Some(instance) => instance.handle(call).await,
            None => self.plugin.handle(call).await,
        };
        handled.is_ok_and(|answer| answer.is_ok())
    }

    /// The recordings since the last call, read back from their file form.
    fn recordings(&self) -> Vec<Recording> {
        let next = || self.recorder.finished().now_or_never().flatten();
        let files = std::iter::from_fn(next).map(|finished| {
            assert_eq!(finished.sets, [7]);
            finished.into_recording().to_json()
        });
        files.map(|file| Recording::parse(file.as_bytes()).unwrap()).collect()
    }

    /// The only recording of this request.
    async fn recording(&self, method: &str, path: &str, body: &str) -> Recording {
        self.send(method, path, body).await;
        let mut recordings = self.recordings();
        let recording = recordings.pop().expect("it was recorded");
        assert!(recordings.is_empty(), "{recordings:?}");
        recording
    }

    fn replay(&self, recording: &Recording, variant: u8) -> Replayed {
        replay(recording, &component(&self.components, variant)).unwrap()
    }

    /// Asserts that the recorded component behaves the same in the replay.
    fn replays(&self, recording: &Recording) {
        let replayed = self.replay(recording, b'0');
        assert_eq!(replayed.difference, None, "{replayed}");
        assert_eq!(replayed.component, recording.component);
        let kind = |failed: Option<RecordedFailure>| failed.map(|failed| failed.kind);
        assert_eq!(kind(replayed.outcome.failed), kind(recording.outcome().unwrap().failed.clone()));
    }
}

async fn repository(store: &Store) -> RepositoryView {
    let named = NewOrganization { name: "acme".to_owned(), base_url: None, host: None };
    let organization = store.create_organization(named, None).await.unwrap().unwrap().id;
    let settings = json!({
        "upstream": "https://user:hunter-two-two@upstream.test/a?sig=signedsettings0",
        "quota": 7,
        "deep": [{"api_token": "settings-token-0"}],
    });
    let row = NewRepository {
        name: "accounts".to_owned(),
        format: "ledger".to_owned(),
        kind: "hosted".to_owned(),
        public: false,
        settings: settings.to_string(),
        upstream: None,
        members: Vec::new(),
    };
    let row = store.create_repository(organization, row, None).await.unwrap().unwrap();
    let settings = settings.to_string().into();
    RepositoryView {
        id: row.id,
        revision: row.revision,
        name: row.name.into(),
        kind: row.kind.into(),
        settings,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_and_a_read_replay_identically() {
    let world = World::new(false).await;
    let put = world.recording("PUT", "lunch", "12").await;
    assert_eq!((put.function(), put.calls.len()), ("handle", 1));
    world.replays(&put);
    let read = world.recording("GET", "lunch", "").await;
    let functions: Vec<&str> = read.calls.iter().map(|call| call.function.as_str()).collect();
    assert_eq!(functions, ["route", "handle"], "they share an instance");
    assert!(read.to_json().contains("\"lunch: 12\""), "{}", read.to_json());
    world.replays(&read);
    // A refusal is not a failure, and the recording contains it.
    let missing = world.recording("GET", "dinner", "").await;
    assert_eq!(missing.outcome().unwrap().status(), Some(404));
    world.replays(&missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_bug_fails_again_and_the_fixed_component_answers() {
    let world = World::new(true).await;
    assert!(world.send("PUT", "lunch", "twelve").await);
    assert!(world.recordings().is_empty(), "it did not fail");
    let failed = world.recording("GET", "lunch", "").await;
    assert_eq!(failed.outcome().unwrap().failed.as_ref().unwrap().kind, "trap");
    assert!(failed.to_json().contains("lunch holds no amount"), "it contains the panic message");
    world.replays(&failed);

    let mended = world.replay(&failed, b'1');
    assert_ne!(mended.component, failed.component);
    let Some(Difference::Ended { recorded, .. }) = &mended.difference else { panic!("{mended}") };
    assert_eq!(recorded.import, "host.log", "the recorded call logged its panic at this point");
    let answer = mended.outcome.answer.as_ref().unwrap();
    assert_eq!(answer["ok"]["status"], 200);
    assert_eq!(answer["ok"]["content"], json!({"inline": {"text": "lunch: twelve is not an amount"}}));
    let text = mended.to_string();
    assert!(text.contains("host.log") && text.contains("twelve is not an amount"), "{text}");
    assert!(text.contains("recorded: it trapped"), "{text}");

    let other = world.replay(&failed, b'2');
    let Some(Difference::Import { recorded, import, arguments, .. }) = &other.difference else {
        panic!("{other}")
    };
    assert_eq!((import.as_str(), &arguments[1]), ("records.repository.get", &json!("rates")));
    assert_eq!(recorded.as_ref().unwrap().arguments[1], "lunch");
    assert!(other.unanswered.as_ref().is_some_and(|import| import.contains("rates")), "{other}");
    assert!(other.to_string().contains("the recording has"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_failure_fails_again() {
    let world = World::new(true).await;
    for (path, kind) in [("-/spin", Some("deadline")), ("-/bad", Some("bad_answer")), ("-/denied", None)] {
        let failed = world.recording("GET", path, "").await;
        let outcome = failed.outcome().unwrap();
        assert_eq!(outcome.failed.as_ref().map(|failed| failed.kind.as_str()), kind, "{path}");
        if kind.is_none() {
            assert_eq!(outcome.status(), Some(500), "a `?` on a refusal of the host");
            let denied =
                failed.calls[1].imports.iter().find(|recorded| recorded.import.ends_with(".begin")).unwrap();
            assert_eq!(denied.answer, Some(RecordedAnswer::Error(json!("denied"))));
        }
        world.replays(&failed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_is_too_large_is_cut_and_marked() {
    let world = World::new(false).await;
    let large = world.recording("GET", "-/large/9", "").await;
    assert!(large.cut.as_ref().unwrap().contains("bytes"), "{:?}", large.cut);
    let refused = replay(&large, &component(&world.components, b'0')).unwrap_err().to_string();
    assert!(refused.contains("is incomplete and cannot be replayed"), "{refused}");
    let fits = world.recording("GET", "-/large/7", "").await;
    assert_eq!(fits.cut, None);
    world.replays(&fits);
    // The recorder also bounds the total size of its recordings, including those that the test has
    // not yet taken from it.
    for _ in 0..12 {
        assert!(world.send("GET", "-/large/7", "").await);
    }
    let stored = world.recordings();
    assert!(stored.iter().filter(|stored| stored.cut.is_none()).count() <= 9);
    assert_eq!(world.recording("GET", "-/large/1", "").await.cut, None, "there is room again");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_random_numbers_of_wasi_are_replayed() {
    let (home, plugins) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = packhouse_tests::checkout().join("target/release/guests/outspoken.wasm");
    std::fs::copy(&file, plugins.path().join("outspoken.wasm")).expect("the guest is built");
    let store = Store::open(StoreConfig::new(home.path())).await.unwrap();
    let wasi = PluginConfig { wasi: true, ..PluginConfig::default() };
    let config = RuntimeConfig {
        plugins: plugins.path().to_owned(),
        per_plugin: [("outspoken".to_owned(), wasi)].into(),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::load(config, store.clone()).await.unwrap();
    let recorder = runtime.recorder().clone();
    let view = repository(&store).await;
    recorder.arm(vec![Armed { set: 1, repository: view.id, count: 2, only_failures: false }]);
    let mut contents = Vec::new();
    for _ in 0..2 {
        let head = Arc::new(RequestHead {
            method: "GET".to_owned(),
            path: vec!["chance".to_owned()].into(),
            repository: Some(view.id),
            ..RequestHead::default()
        });
        let routed = runtime.plugin("outspoken").unwrap();
        let routed =
            routed.route_to_handle("hosted", &head).await.unwrap().expect("the route was not refused");
        let mut call = Call::new(head, routed.intent.action);
        call.target = Some(view.clone());
        let answer = routed.instance.unwrap().handle(call).await.unwrap().expect("the call did not fail");
        assert!(!answer.cacheable, "a call that read the clock has an uncacheable answer");
        let recording = recorder.finished().await.unwrap().into_recording();
        let replayed = replay(&recording, &file).unwrap();
        assert_eq!(replayed.difference, None, "{replayed}");
        contents.push(replayed.outcome.answer.unwrap()["ok"]["content"]["inline"]["text"].clone());
    }
    let lines: Vec<&str> = contents.iter().flat_map(|content| content.as_str().unwrap().lines()).collect();
    let different: std::collections::BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!((lines.len(), different.len()), (4, 4), "each reading is different: {lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_without_a_client_replay_too() {
    let (home, plugins) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = packhouse_tests::checkout().join("target/release/plugins/npm.wasm");
    std::fs::copy(&file, plugins.path().join("npm.wasm")).expect("the plugins are built");
    let store = Store::open(StoreConfig::new(home.path())).await.unwrap();
    let config = RuntimeConfig { plugins: plugins.path().to_owned(), ..RuntimeConfig::default() };
    let runtime = Runtime::load(config, store.clone()).await.unwrap();
    let recorder = runtime.recorder().clone();
    let plugin = runtime.plugin("npm").unwrap();
    let view = repository(&store).await;
    recorder.arm(vec![Armed { set: 1, repository: view.id, count: 9, only_failures: false }]);
    let call = || {
        let mut call = Call::new(Arc::new(RequestHead::default()), Action::Read);
        call.target = Some(view.clone());
        call
    };
    let yanked = VersionState { state: "deprecated".to_owned(), reason: "old".to_owned() };
    let _ = plugin.mark_version(call(), "a", "1.0.0", yanked).await;
    let _ = plugin.delete_version(call(), "a", "1.0.0").await;
    let _ = plugin.present_version(call(), "a", "1.0.0").await;
    let _ = plugin.judge_versions(call(), &[("a".to_owned(), "1.0.0".to_owned())]).await;
    let _ = plugin.list_unshown(call(), "").await;
    let mut functions = Vec::new();
    while let Some(finished) = recorder.finished().now_or_never().flatten() {
        let recording = finished.into_recording();
        let replayed = replay(&recording, &file).unwrap();
        assert_eq!(replayed.difference, None, "{replayed}");
        functions.push(recording.function().to_owned());
    }
    let expected = ["mark_version", "delete_version", "present_version", "judge_versions", "list_unshown"];
    assert_eq!(functions, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_recorded_without_a_request_for_it() {
    let world = World::new(false).await;
    let other = packhouse_store::RepositoryId(world.view.id.0 + 1);
    for sets in [vec![], vec![Armed { set: 1, repository: other, count: 9, only_failures: false }]] {
        world.recorder.arm(sets);
        assert!(world.send("PUT", "lunch", "12").await);
        assert!(world.recordings().is_empty());
    }
    world.recorder.arm(vec![Armed { set: 7, repository: world.view.id, count: 2, only_failures: false }]);
    for _ in 0..3 {
        assert!(world.send("PUT", "lunch", "12").await);
    }
    assert_eq!(world.recordings().len(), 2);
}

const SECRETS: [&str; 14] = [
    "pkl_begun-sign-in-0",
    "sso/begun-page-0",
    "pkl_asked-sign-in-0",
    "placeholder-of-a-token-0",
    "id-of-a-token-0",
    "pkh_hint-0",
    "signature-of-bytes-0",
    "public-key-0-public-key-0",
    "signedsettings0",
    "user:hunter",
    "signedreply0",
    "session-cookie-0",
    "hunter-two-two",
    "settings-token-0",
];
const TOKEN: &str = "pkh_0123456789abcdefghijklmnopqrstuvwxyz";

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_contains_no_credential_and_still_replays() {
    let mut world = World::new(false).await;
    world.recorder.hide(vec!["pkh_".to_owned(), "pkl_".to_owned()]);
    world.services = Services::of(&Arc::new(SecretServices));
    world.view.kind = "proxy".into();
    assert!(world.send("PUT", "-/secrets/pkl_asked-sign-in-0", &format!("my token is {TOKEN}.")).await);
    let recording = world.recordings().pop().unwrap();
    let file = recording.to_json();
    let hex: String = b"signature-of-bytes-0".iter().map(|byte| format!("{byte:02x}")).collect();
    for secret in SECRETS.into_iter().chain([TOKEN, &hex]) {
        assert!(!file.contains(secret), "{secret} is in {file}");
    }
    for there in ["https://packhouse.test/", "upstream.test", "my token is hidden-", "memory-key"] {
        assert!(file.contains(there), "{there} is not in {file}");
    }
    world.replays(&recording);
}

/// Services that return secrets.
struct SecretServices;

impl IdentityService for SecretServices {
    fn begin_login<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Login> {
        let url = "https://packhouse.test/sso/begun-page-0".to_owned();
        Box::pin(async { Ok(Login { id: "pkl_begun-sign-in-0".to_owned(), url }) })
    }

    fn finish_login<'a>(&'a self, _id: &'a str) -> ServiceFuture<'a, LoginState> {
        Box::pin(async { Ok(LoginState::Granted("placeholder-of-a-token-0".to_owned())) })
    }

    fn tokens(&self) -> ServiceFuture<'_, Vec<TokenView>> {
        let token = TokenView {
            id: "id-of-a-token-0".to_owned(),
            name: "ci".to_owned(),
            hint: "pkh_hint-0".to_owned(),
            scope: Vec::new(),
            created: 1,
            expires: None,
        };
        Box::pin(async { Ok(vec![token]) })
    }
}

impl packhouse_runtime::PolicyService for SecretServices {}

impl packhouse_runtime::AdvisoryService for SecretServices {}

impl SigningService for SecretServices {
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        let key = "public-key-0-public-key-0".to_owned();
        let key = PublicKey { id: "memory-key".to_owned(), kind: "k".to_owned(), key, expires: None };
        Box::pin(async { Ok(vec![key]) })
    }

    fn sign<'a>(&'a self, _target: &'a RepositoryView, _message: &'a [u8]) -> ServiceFuture<'a, Signature> {
        let value = b"signature-of-bytes-0".to_vec();
        Box::pin(async { Ok(Signature { key_id: "memory-key".to_owned(), value }) })
    }
}

impl UpstreamService for SecretServices {
    fn fetch(&self, _proxy: &RepositoryView, _fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        Ok(Box::new(SecretReply))
    }
}

struct SecretReply;

impl Reply for SecretReply {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(async { Ok(200) })
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(async { Ok(vec![("set-cookie".to_owned(), "session-cookie-0".to_owned())]) })
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(async { Ok("https://cdn.test/a?token=signedreply0&x=1".to_owned()) })
    }

    fn expect(&mut self, _digest: Digest) {}

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_a_recording_is_refused_with_a_reason() {
    let world = World::new(false).await;
    let good = world.recording("PUT", "lunch", "12").await;
    let read = |file: &str| Recording::parse(file.as_bytes()).unwrap_err();
    assert!(read("").contains("not a recording"));
    assert!(read("{}").contains("packhouse_recording"));
    assert!(read(r#"{"packhouse_recording": 2}"#).contains("version 2"));
    assert!(read(&good.to_json().replace("sha256:", "md5:")).contains("component"));
    let broken = |change: fn(&mut Recording)| {
        let mut broken = good.clone();
        change(&mut broken);
        broken
    };
    assert!(read(&broken(|it| it.calls.clear()).to_json()).contains("0 calls"));
    let other = broken(|it| it.format = "maven".to_owned());
    let refused = replay(&other, &component(&world.components, b'0')).unwrap_err().to_string();
    assert!(refused.contains("maven") && refused.contains("ledger"), "{refused}");
    // A recording with invalid content fails the replayed call, and the error names the unknown
    // function.
    let odd = broken(|it| it.calls[0].function = "dance".to_owned());
    let replayed = world.replay(&odd, b'0');
    assert!(replayed.outcome.failed.unwrap().message.contains("dance"));
    let odd = broken(|it| {
        for recorded in &mut it.calls[0].imports {
            recorded.answer = Some(RecordedAnswer::Ok(json!({"blob": "seven", "text": 7})));
        }
    });
    assert!(world.replay(&odd, b'0').outcome.failed.is_some());
}
