//! Two worlds for a protocol table. In the native world, the test calls the format directly, with a
//! host in memory. The second world is the format's real component in the runtime over a store.
//! Both get the same requests and must give the same answers.

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use packhouse_runtime::{
    Action, Answer, Appended, Armed, BodyPlan, Call, Content, Failure, Intent, Moved, Part, Plugin,
    PublicKey, Recorder, Recording, Replayer, RepositoryView, RequestHead, Routed, RoutedInstance, Runtime,
    RuntimeConfig, ServiceFuture, Services, Signature, SigningService,
};
use packhouse_sdk::Format;
use packhouse_store::{
    Append, BlobsConfig, NewMember, NewOrganization, NewRepository, OrganizationId, Store, StoreConfig,
    StoreError,
};
use packhouse_testkit::{Case, Effects, MemoryHost, TestRequest, World, run};
use std::sync::Arc;

/// The component's world: the host's data path without HTTP and authentication. Its store is in a
/// folder, its blobs are in memory.
struct Wasm {
    executor: tokio::runtime::Runtime,
    plugin: Arc<Plugin>,
    store: Store,
    organization: OrganizationId,
    view: RepositoryView,
    recorder: Recorder,
    replayer: Replayer,
    _runtime: Runtime,
    _home: tempfile::TempDir,
}

impl Wasm {
    fn new(format: &str, settings: &serde_json::Value) -> Self {
        let executor =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let home = tempfile::TempDir::new().unwrap();
        let (runtime, store, organization, view, replayer) = executor.block_on(async {
            let config = StoreConfig { blobs: BlobsConfig::Memory, ..StoreConfig::new(home.path()) };
            let store = Store::open(config).await.unwrap();
            let plugins = packhouse_tests::checkout().join("target/release/plugins");
            assert!(plugins.is_dir(), "build the plugins first: `./bootstrap build`");
            // Each world loads all plugins; the cache compiles them only once.
            let cache = Some(packhouse_tests::checkout().join("target/compiled-plugins"));
            let compiled = cache.clone();
            let config = RuntimeConfig { plugins, cache, ..RuntimeConfig::default() };
            let runtime = Runtime::load(config, store.clone()).await.unwrap();
            let component = runtime
                .plugin(format)
                .expect("the plugin is built")
                .file()
                .expect("it is of the folder")
                .to_owned();
            let replayer = Replayer::load(&component, compiled.as_deref()).await.unwrap();
            let (organization, view) = repository(&store, format, settings).await;
            (runtime, store, organization, view, replayer)
        });
        let plugin = runtime.plugin(format).expect("the plugin is built");
        // The recorder records every call, and `replay_all` replays it afterwards.
        let all = Armed { set: 1, repository: view.id, count: u32::MAX, only_failures: false };
        let recorder = runtime.recorder().clone();
        recorder.arm(vec![all]);
        Self {
            executor,
            plugin,
            store,
            organization,
            view,
            recorder,
            replayer,
            _runtime: runtime,
            _home: home,
        }
    }

    async fn answer(&self, request: &TestRequest, head: &Arc<RequestHead>) -> packhouse_testkit::Answer {
        let answer = self.called(request, head).await;
        self.replay_all().await;
        answer
    }

    /// Asserts that each call of the request behaves the same in a replay.
    async fn replay_all(&self) {
        while let Some(finished) = self.recorder.finished().now_or_never().flatten() {
            let recording = finished.into_recording();
            let read = Recording::parse(recording.to_json().as_bytes()).unwrap();
            assert_eq!(read, recording, "a file holds all of it");
            if recording.cut.is_some() {
                continue;
            }
            let replayed = self.replayer.replay(&read).await.unwrap();
            assert_eq!(replayed.difference, None, "{replayed}\n{}", recording.to_json());
        }
    }

    async fn called(&self, request: &TestRequest, head: &Arc<RequestHead>) -> packhouse_testkit::Answer {
        let Routed { intent, instance } = match self.plugin.route_to_handle("hosted", head).await.unwrap() {
            Ok(routed) => routed,
            Err(failure) => return refused(failure),
        };
        if let BodyPlan::Body { limit } | BodyPlan::Append { limit, .. } = intent.body
            && request.body.len() as u64 > limit
        {
            return packhouse_testkit::Answer::refusal(
                413,
                "file_too_large",
                &format!("At most {limit} bytes"),
            );
        }
        if matches!(intent.body, BodyPlan::Parts { .. }) && request.parts.is_empty() {
            return packhouse_testkit::Answer::refusal(400, "invalid_request", "The body is not a form");
        }
        match self.take(request, head, &intent, instance).await {
            Ok(answer) => answered(answer).await,
            Err(failure) => refused(failure),
        }
    }

    async fn take(
        &self,
        request: &TestRequest,
        head: &Arc<RequestHead>,
        intent: &Intent,
        instance: Option<RoutedInstance<'_>>,
    ) -> Result<Answer, Failure> {
        let current = self.store.find_repository(self.organization, self.view.id).await.unwrap().unwrap();
        let is_moved = request.headers.iter().any(|(name, _)| name == "packhouse-published-at");
        let call = |action| Call {
            target: Some(RepositoryView { revision: current.revision, ..self.view.clone() }),
            moved: is_moved.then(Moved::default),
            services: Services {
                signing: Arc::new(Signing),
                advisories: Arc::new(Signing),
                ..Services::default()
            },
            ..Call::new(Arc::clone(head), action)
        };
        if intent.check {
            self.plugin.check(call(Action::Read)).await.unwrap()?;
        }
        let (body, appended) = self.receive(request, intent).await.unwrap();
        let parts = self.receive_parts(request, intent).await.unwrap();
        let call = Call { body, parts, appended, ..call(intent.action) };
        match instance {
            Some(instance) => instance.handle(call).await.unwrap(),
            None => self.plugin.handle(call).await.unwrap(),
        }
    }

    async fn receive_parts(&self, request: &TestRequest, intent: &Intent) -> Result<Vec<Part>, StoreError> {
        let mut parts = Vec::new();
        let BodyPlan::Parts { limit } = intent.body else { return Ok(parts) };
        for form in &request.parts {
            let mut stager = self.store.stage(&intent.digests, limit);
            stager.write(Bytes::from(form.value.clone())).await?;
            let (name, filename) = (form.name.clone(), form.filename.clone());
            parts.push(Part { name, filename, headers: Vec::new(), body: stager.finish().await? });
        }
        Ok(parts)
    }

    async fn receive(
        &self,
        request: &TestRequest,
        intent: &Intent,
    ) -> Result<(Option<packhouse_store::Blob>, Option<Appended>), StoreError> {
        let bytes = Bytes::from(request.body.clone());
        match &intent.body {
            BodyPlan::Body { limit } => {
                let mut stager = self.store.stage(&intent.digests, *limit);
                stager.write(bytes).await?;
                Ok((Some(stager.finish().await?), None))
            }
            BodyPlan::Append { upload: name, offset, limit } => {
                let Some(upload) = self.store.upload(self.view.id, name).await? else {
                    return Ok((None, None));
                };
                let Append::Ready(mut appender) = upload.append(*offset, *limit).await? else {
                    return Ok((None, None));
                };
                let received = bytes.len() as u64;
                appender.write(bytes).await?;
                appender.finish().await?;
                Ok((None, Some(Appended { upload: name.clone(), received })))
            }
            _ => Ok((None, None)),
        }
    }

    /// Returns the address below which the request's path lies: the plugin's root path if `claim`
    /// names one, otherwise the repository's address.
    fn address(&self, claim: Option<&str>) -> String {
        let claims = &self.plugin.description().claims;
        let path = match claims.iter().find(|known| Some(known.name.as_str()) == claim) {
            Some(claim) => claim.path.trim_end_matches('/').replace("{repository}", &self.view.name),
            None => format!("/repositories/{}", self.view.name),
        };
        format!("https://packhouse.test{path}")
    }
}

/// Signs as the memory host does.
struct Signing;

impl packhouse_runtime::PolicyService for Signing {}

impl packhouse_runtime::AdvisoryService for Signing {
    fn find<'a>(&'a self, _of: &'a RepositoryView, _names: Vec<String>) -> ServiceFuture<'a, String> {
        Box::pin(async { Ok("{}".to_owned()) })
    }
}

impl SigningService for Signing {
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        let key = "YSBrZXkgb2YgdGhlIG1lbW9yeSBob3N0J3M=".to_owned();
        let kind = "ecdsa-sha2-nistp256".to_owned();
        Box::pin(async move { Ok(vec![PublicKey { id: "memory".to_owned(), kind, key, expires: None }]) })
    }

    fn sign<'a>(&'a self, _target: &'a RepositoryView, message: &'a [u8]) -> ServiceFuture<'a, Signature> {
        let value = packhouse_tests::digests::sha256(message).into_bytes();
        Box::pin(async move { Ok(Signature { key_id: "memory".to_owned(), value }) })
    }
}

async fn repository(
    store: &Store,
    format: &str,
    settings: &serde_json::Value,
) -> (OrganizationId, RepositoryView) {
    let organization = NewOrganization { name: "default".into(), base_url: None, host: None };
    let owner = NewMember {
        email: "owner@localhost".into(),
        name: String::new(),
        password_hash: String::new(),
        permissions: "{}".into(),
    };
    let (organization, _) = store.bootstrap(organization, owner).await.unwrap().expect("an empty database");
    let repository = NewRepository {
        name: "releases".into(),
        format: format.into(),
        kind: "hosted".into(),
        public: false,
        settings: settings.to_string(),
        upstream: None,
        members: Vec::new(),
    };
    let row =
        store.create_repository(organization.id, repository, None).await.unwrap().expect("the name is free");
    let settings = settings.to_string().into();
    let view = RepositoryView {
        id: row.id,
        revision: row.revision,
        name: row.name.into(),
        kind: row.kind.into(),
        settings,
    };
    (organization.id, view)
}

/// The answer that the host would send. The tests of the whole program cover HEAD and the rest of
/// HTTP.
async fn answered(answer: Answer) -> packhouse_testkit::Answer {
    let body = match answer.content {
        Content::None => Vec::new(),
        Content::Inline(bytes) => bytes.to_vec(),
        Content::Joined(joined) => joined.concat().to_vec(),
        Content::Arriving(_) => panic!("nothing arrives here"),
        Content::Blob(blob) => {
            let mut stream = blob.stream(0..blob.size());
            let mut bytes = Vec::new();
            while let Some(piece) = stream.next().await {
                bytes.extend_from_slice(&piece.unwrap());
            }
            bytes
        }
    };
    let headers =
        answer.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    packhouse_testkit::Answer {
        status: answer.status,
        headers: headers.collect(),
        body,
        problems: Vec::new(),
        modified: answer.modified,
    }
}

fn refused(failure: Failure) -> packhouse_testkit::Answer {
    let problems: Vec<_> =
        failure.problems.into_iter().map(|problem| (problem.code, problem.message)).collect();
    let messages: Vec<_> = problems.iter().map(|(_, message)| message.as_str()).collect();
    let headers =
        failure.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    packhouse_testkit::Answer {
        status: failure.status,
        headers: headers.collect(),
        body: messages.join("\n").into_bytes(),
        problems,
        modified: None,
    }
}

impl World for Wasm {
    fn send(&mut self, request: &TestRequest) -> packhouse_testkit::Answer {
        let Some(head) = head(request, self.address(request.claim.as_deref())) else {
            return packhouse_testkit::Answer::refusal(400, "invalid_request", "The address makes no sense");
        };
        let head = Arc::new(RequestHead { repository: Some(self.view.id), ..head });
        let mut answer = self.executor.block_on(self.answer(request, &head));
        if request.method == "HEAD" {
            answer.body.clear();
        }
        answer
    }

    fn effects(&mut self) -> Effects {
        let mut records = Vec::new();
        self.executor.block_on(async {
            let mut after: Option<String> = None;
            loop {
                let page = self.store.scan(self.view.id, "", after.as_deref(), 1000).await.unwrap();
                let Some(last) = page.last() else { return };
                after = Some(last.key.clone());
                records.extend(page.into_iter().map(|entry| (entry.key, entry.value.to_vec())));
            }
        });
        Effects { records, ..Effects::default() }
    }
}

/// The request as the host would pass it on; `None` for a path that the host refuses.
fn head(request: &TestRequest, address: String) -> Option<RequestHead> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let path = path.strip_prefix('/')?;
    let segments = path.split('/').filter(|_| !path.is_empty()).map(segment).collect::<Option<_>>()?;
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    };
    Some(RequestHead {
        method: request.method.clone(),
        claim: request.claim.clone(),
        path: segments,
        query: query.split('&').filter(|piece| !piece.is_empty()).map(pair).collect::<Option<_>>()?,
        headers: request.sent_headers(),
        address,
        caller: request.caller.as_deref().map(Into::into),
        request_id: "test".into(),
        ..RequestHead::default()
    })
}

fn segment(encoded: &str) -> Option<String> {
    decode(encoded)
        .filter(|segment| segment != "." && segment != ".." && !segment.chars().any(char::is_control))
}

fn decode(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Two worlds that get the same requests and must give the same answers.
struct ComparedWorlds<'a> {
    native: &'a mut dyn World,
    wasm: &'a mut dyn World,
    /// Names that the worlds made themselves, such as names of uploads. Each pair has the
    /// component's name and the native name.
    names: Vec<(String, String)>,
}

impl World for ComparedWorlds<'_> {
    fn send(&mut self, request: &TestRequest) -> packhouse_testkit::Answer {
        let translate = |target: &str, (wasm, native): &(String, String)| target.replace(wasm, native);
        let target =
            self.names.iter().fold(request.target.clone(), |target, names| translate(&target, names));
        let native = self.native.send(&TestRequest { target, ..request.clone() });
        let wasm = self.wasm.send(request);
        if let (Some(wasm), Some(native)) = (made_name(&wasm), made_name(&native))
            && wasm != native
        {
            self.names.push((wasm, native));
        }
        assert_eq!(comparable(&native), comparable(&wasm), "{} {}", request.method, request.target);
        wasm
    }

    fn effects(&mut self) -> Effects {
        self.wasm.effects()
    }
}

/// The last segment of a `Location`.
fn made_name(answer: &packhouse_testkit::Answer) -> Option<String> {
    answer.header("location")?.rsplit('/').next().map(str::to_owned)
}

/// Returns the parts of an answer that must be equal: everything except the time of day and values
/// computed from it.
fn comparable(answer: &packhouse_testkit::Answer) -> (u16, Vec<String>, Vec<(String, String)>, usize) {
    let mut names: Vec<String> = answer.headers.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    (answer.status, names, answer.problems.clone(), answer.body.len())
}

fn keys(effects: &Effects) -> Vec<String> {
    effects.records.iter().map(|(key, _)| key.clone()).collect()
}

/// Runs a table in both worlds, in a hosted repository called `releases` with these settings.
/// `settings` has a value for every setting that the format reads. Both worlds must answer the same
/// and have the same records at the end.
pub(crate) fn in_both_worlds<F: Format>(settings: &serde_json::Value, cases: &[Case]) {
    let description: serde_json::Value = serde_json::from_str(&F::describe().to_json()).unwrap();
    let mut native = MemoryHost::new().mount::<F>("releases", "hosted", settings.clone());
    let mut wasm = Wasm::new(description["format"].as_str().unwrap(), settings);
    run(&mut ComparedWorlds { native: &mut native, wasm: &mut wasm, names: Vec::new() }, cases);
    assert_eq!(keys(&native.effects()), keys(&wasm.effects()));
}

/// Returns the component's verdict on these versions: for each version, true for a pre-release, and
/// its position in the order.
pub(crate) fn judged(format: &str, versions: &[&str]) -> (Vec<Option<bool>>, Vec<Option<u32>>) {
    let wasm = Wasm::new(format, &serde_json::json!({}));
    let ids: Vec<_> = versions.iter().map(|version| ("a/b".to_owned(), (*version).to_owned())).collect();
    let texts: Vec<String> = versions.iter().map(|version| (*version).to_owned()).collect();
    wasm.executor.block_on(async {
        let target = Some(wasm.view.clone());
        let call = Call { target, ..Call::new(Arc::new(RequestHead::default()), Action::Read) };
        let facts = wasm.plugin.judge_versions(call, &ids).await.unwrap().unwrap();
        let prerelease = facts.into_iter().map(|facts| facts.and_then(|facts| facts.prerelease)).collect();
        (prerelease, wasm.plugin.compare_versions(&texts).await.unwrap())
    })
}

/// The intents that the component plans for these requests to a hosted repository.
pub(crate) fn planned(format: &str, requests: &[(&str, &str)]) -> Vec<Intent> {
    let wasm = Wasm::new(format, &serde_json::json!({}));
    let plan = |(method, target): &(&str, &str)| {
        let head = Arc::new(head(&TestRequest::new(method, target), wasm.address(None)).unwrap());
        let routed = wasm.executor.block_on(wasm.plugin.route_to_handle("hosted", &head));
        routed.unwrap().unwrap_or_else(|_| panic!("{method} {target} is refused")).intent
    };
    requests.iter().map(plan).collect()
}
