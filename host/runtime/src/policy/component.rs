//! Component of one policy: it is compiled, described, and asked for rulings.

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
use crate::engine::POLICY_SLOTS;
use crate::error::{CallError, LoadError};
use crate::footprint;
use crate::instance::{CallName, Runner};
use crate::load::check_layer;
use crate::request::RequestHead;
use crate::state::{HostState, Phase};

/// Interface that every policy exports.
const EXPORT: &str = "packhouse:policy/policy@0.1.";
/// Most bytes of a policy component. Policies are small.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// Limits of a call, while the client waits for its answer.
const MEMORY: usize = 32 << 20;
const TIME: Duration = Duration::from_secs(1);
const HOSTCALL_BYTES: usize = 4 << 20;

type Guest = wasmtime::Store<HostState>;

pub struct PolicyComponent {
    runner: Runner,
    code: InstancePre<HostState>,
    policy: GuestIndices,
    description: PolicyDescription,
    digest: String,
}

/// The request that a judgement belongs to, for logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct JudgedFor {
    pub(crate) repository: Option<(RepositoryId, Arc<str>)>,
    pub(crate) head: Arc<RequestHead>,
}

impl PolicyComponent {
    /// Compiles these bytes and describes the component. Errors use this name. The error `Plugin`
    /// states why the bytes are not a policy.
    pub(crate) async fn load(
        compiler: &Compiler,
        slots: Arc<Semaphore>,
        name: &Path,
        bytes: Bytes,
    ) -> Result<PolicyComponent, LoadError> {
        let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
        if bytes.len() > MAX_BYTES {
            return Err(refuse(format!("the component has {} bytes; the limit is {MAX_BYTES}", bytes.len())));
        }
        check_layer(&bytes).map_err(refuse)?;
        let Compiled { component, digest, .. } = compiler.compile(name, bytes).await.map_err(refuse)?;
        footprint::fits(&component, MEMORY).map_err(refuse)?;
        let (code, policy) = link(compiler.engine(), &component).map_err(refuse)?;
        let runner = |name: &str| {
            let plugin: Arc<str> = format!("policy/{name}").into();
            Runner::new(compiler.engine().clone(), plugin, limits(), Arc::clone(&slots))
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

    pub fn description(&self) -> &PolicyDescription {
        &self.description
    }

    /// `sha256:` and the hex digest of its bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Converts settings into the form that [`judge`](Self::judge) takes, for a format with this
    /// folding of names.
    pub fn folded<'a>(&self, settings: &'a str, folding: Folding) -> Cow<'a, str> {
        self.description.folded(settings, folding)
    }

    /// Number of calls that ended since the server started, and of failed ones among them.
    pub fn calls(&self) -> (u64, u64) {
        self.runner.meters.calls()
    }

    /// Validates these settings. The inner error is the component's reason against them. Returns
    /// any [`CallError`].
    #[boxed]
    pub async fn check(&self, settings: &str) -> Result<Result<(), String>, CallError> {
        let (name, state) = begin(&self.runner, "check", &JudgedFor::default());
        let body = async |guest: &mut Guest, instance: &Instance| {
            self.policy.load(&mut *guest, instance)?.call_check(guest, settings).await
        };
        let checked = self.runner.run(name, state, &self.code, body).await?;
        Ok(checked.map_err(|wrong| super::sentence(&wrong)))
    }

    /// Judges at most [`MAX_BATCH`] versions as part of this request. Returns one ruling for each,
    /// `BadAnswer` if their number differs, or any other [`CallError`].
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
            return Err(CallError::Host(format!("{} versions in one call", versions.len())));
        }
        let judged_for = JudgedFor { repository: Some(repository), head: Arc::clone(head) };
        let (name, state) = begin(&self.runner, "judge", &judged_for);
        let body = async |guest: &mut Guest, instance: &Instance| {
            self.policy.load(&mut *guest, instance)?.call_judge(guest, settings, context, versions).await
        };
        let rulings = self.runner.run(name, state, &self.code, body).await?;
        if rulings.len() != versions.len() {
            let problem = format!("{} rulings for {} versions", rulings.len(), versions.len());
            return Err(CallError::BadAnswer(problem));
        }
        Ok(rulings.into_iter().map(Ruling::from).collect())
    }
}

fn limits() -> Limits {
    Limits {
        memory_bytes: MEMORY,
        call_timeout: TIME,
        hostcall_bytes: HOSTCALL_BYTES,
        handles: 16,
        concurrency: POLICY_SLOTS,
        written_bytes: 0,
        decoded_bytes: 0,
        ..Limits::default()
    }
}

/// Returns the call's name and a state that can call no import.
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

/// Links the component without imports. The error states why it is not a policy.
fn link(engine: &Engine, component: &Component) -> Result<(InstancePre<HostState>, GuestIndices), String> {
    let kind = component.component_type();
    let imports: Vec<&str> = kind.imports(engine).map(|(name, _)| name).collect();
    if !imports.is_empty() {
        return Err(format!(
            "the component imports {}; a policy must not import anything",
            imports.join(", ")
        ));
    }
    if !kind.exports(engine).any(|(name, _)| name.starts_with(EXPORT)) {
        return Err(format!("the component does not export {EXPORT}0, so it is not a policy"));
    }
    let failed = |error: wasmtime::Error| format!("the component cannot be linked: {error:#}");
    let code = Linker::new(engine).instantiate_pre(component).map_err(failed)?;
    let policy = GuestIndices::new(&code).map_err(failed)?;
    Ok((code, policy))
}
