//! One policy's component: compiled, asked what it is, and asked for rulings.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use packhouse_names::Folding;
use packhouse_store::RepositoryId;
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Component, Instance, InstancePre, Linker};

use super::bindings::exports::packhouse::policy::policy::GuestIndices;
use super::{MAX_BATCH, PolicyContext, PolicyDescription, PolicyFacts, Ruling};
use crate::boxed;
use crate::compiler::{Compiled, Compiler};
use crate::config::Limits;
use crate::engine::POLICY_PLACES;
use crate::error::{CallError, LoadError};
use crate::footprint;
use crate::instance::{CallName, Runner};
use crate::load::check_layer;
use crate::request::RequestHead;
use crate::state::{HostState, Phase};

/// What every policy exports.
const EXPORT: &str = "packhouse:policy/policy@0.1.";
/// Bytes of a component at most: policies are small.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// What a call may use. A judgement stands between a client and its answer.
const MEMORY: usize = 32 << 20;
const TIME: Duration = Duration::from_secs(1);
const HANDED_OVER: usize = 4 << 20;

type Guest = wasmtime::Store<HostState>;

/// A policy's component.
pub struct PolicyComponent {
    runner: Runner,
    code: InstancePre<HostState>,
    policy: GuestIndices,
    description: PolicyDescription,
    digest: String,
}

/// Whose request a judgement is part of, for logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct JudgedFor {
    pub(crate) repository: Option<(RepositoryId, Arc<str>)>,
    pub(crate) head: Arc<RequestHead>,
}

impl PolicyComponent {
    /// Compiles these bytes, which errors call by this name, and asks them what they are. `Plugin` says why they are no policy.
    pub(crate) async fn load(
        compiler: &Compiler,
        places: Arc<Semaphore>,
        name: &Path,
        bytes: Bytes,
    ) -> Result<PolicyComponent, LoadError> {
        let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
        if bytes.len() > MAX_BYTES {
            return Err(refuse(format!("the component has {} bytes, over {MAX_BYTES}", bytes.len())));
        }
        check_layer(&bytes).map_err(refuse)?;
        let Compiled { component, digest, .. } = compiler.compile(name, bytes).await.map_err(refuse)?;
        footprint::fits(&component, MEMORY).map_err(refuse)?;
        let (code, policy) = link(compiler.engine(), &component).map_err(refuse)?;
        let runner = |name: &str| {
            let plugin: Arc<str> = format!("policy/{name}").into();
            Runner::new(compiler.engine().clone(), plugin, limits(), Arc::clone(&places))
        };
        let (first, digest) = (runner("new"), digest.digest().to_string());
        let (call, state) = begin(&first, "describe", &JudgedFor::default());
        let described = first.run(call, state, &code, async |guest: &mut Guest, instance: &Instance| {
            policy.load(&mut *guest, instance)?.call_describe(guest).await
        });
        let described = described.await.map_err(|error| refuse(format!("`describe` failed: it {error}")))?;
        let description = PolicyDescription::parse(&described).map_err(refuse)?;
        let runner = runner(&description.name);
        Ok(PolicyComponent { runner, code, policy, description, digest })
    }

    /// What it says of itself.
    pub fn description(&self) -> &PolicyDescription {
        &self.description
    }

    /// `sha256:` and hex of its bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// These settings as [`judge`](Self::judge) takes them for a format that folds names so.
    pub fn folded<'a>(&self, settings: &'a str, folding: Folding) -> Cow<'a, str> {
        self.description.folded(settings, folding)
    }

    /// How many calls of it have ended since the server started, and how many of them failed.
    pub fn calls(&self) -> (u64, u64) {
        self.runner.meters.calls()
    }

    /// Whether it can use these settings; else what it says is wrong with them. Any [`CallError`].
    #[boxed]
    pub async fn check(&self, settings: &str) -> Result<Result<(), String>, CallError> {
        let (name, state) = begin(&self.runner, "check", &JudgedFor::default());
        let body = async |guest: &mut Guest, instance: &Instance| {
            self.policy.load(&mut *guest, instance)?.call_check(guest, settings).await
        };
        let checked = self.runner.run(name, state, &self.code, body).await?;
        Ok(checked.map_err(|wrong| super::sentence(&wrong)))
    }

    /// Judges these versions, at most [`MAX_BATCH`], as part of this request: a ruling for each. `BadAnswer` where there are more or
    /// fewer; else any [`CallError`].
    #[boxed]
    pub async fn judge(
        &self,
        head: &Arc<RequestHead>,
        repository: (RepositoryId, Arc<str>),
        settings: &str,
        context: &PolicyContext,
        versions: &[PolicyFacts],
    ) -> Result<Vec<Ruling>, CallError> {
        if versions.len() > MAX_BATCH {
            return Err(CallError::Host(format!("{} versions are judged in one call", versions.len())));
        }
        let judged_for = JudgedFor { repository: Some(repository), head: Arc::clone(head) };
        let (name, state) = begin(&self.runner, "judge", &judged_for);
        let body = async |guest: &mut Guest, instance: &Instance| {
            self.policy.load(&mut *guest, instance)?.call_judge(guest, settings, context, versions).await
        };
        let rulings = self.runner.run(name, state, &self.code, body).await?;
        if rulings.len() != versions.len() {
            let said = format!("{} rulings on {} versions", rulings.len(), versions.len());
            return Err(CallError::BadAnswer(said));
        }
        Ok(rulings.into_iter().map(Ruling::from).collect())
    }
}

fn limits() -> Limits {
    Limits {
        memory_bytes: MEMORY,
        call_timeout: TIME,
        hostcall_bytes: HANDED_OVER,
        handles: 16,
        concurrency: POLICY_PLACES,
        written_bytes: 0,
        decoded_bytes: 0,
        ..Limits::default()
    }
}

/// The call's name and its state, from which nothing can be reached.
fn begin(
    runner: &Runner,
    function: &'static str,
    judged_for: &JudgedFor,
) -> (CallName, impl FnOnce() -> HostState + use<>) {
    let (id, repository) = judged_for.repository.clone().unzip();
    let head = Arc::clone(&judged_for.head);
    let name = CallName {
        function,
        format: Arc::clone(&runner.plugin),
        repository,
        repository_id: id,
        head: Arc::clone(&head),
    };
    let (plugin, limits) = (Arc::clone(&runner.plugin), Arc::clone(&runner.limits));
    (name, move || HostState::within(Phase::Describe, plugin, limits, head))
}

/// Links it with nothing. Says why it is no policy.
fn link(engine: &Engine, component: &Component) -> Result<(InstancePre<HostState>, GuestIndices), String> {
    let kind = component.component_type();
    let imports: Vec<&str> = kind.imports(engine).map(|(name, _)| name).collect();
    if !imports.is_empty() {
        return Err(format!("the component imports {}: a policy imports nothing", imports.join(", ")));
    }
    if !kind.exports(engine).any(|(name, _)| name.starts_with(EXPORT)) {
        return Err(format!("the component does not export {EXPORT}0, so it is not a policy"));
    }
    let told = |error: wasmtime::Error| format!("the component cannot be linked: {error:#}");
    let code = Linker::new(engine).instantiate_pre(component).map_err(told)?;
    let policy = GuestIndices::new(&code).map_err(told)?;
    Ok((code, policy))
}
