//! A plugin's `route` and its result: the intent, and the instance in which the request's `handle`
//! may continue.

use std::sync::Arc;

use wasmtime::component::Instance;

use crate::answer::{self, Answer, Failure};
use crate::boxed;
use crate::call::Call;
use crate::description::MANIFEST;
use crate::error::CallError;
use crate::instance::{FinishedCall, ReusableInstance};
use crate::plugin::{Guest, Plugin, borrow};
use crate::request::{BodyPlan, Intent, RequestHead};
use crate::state::http::RequestRep;
use crate::state::{HostState, Phase};

/// Intent of a request, and the instance for its `handle`.
pub struct Routed<'a> {
    pub intent: Intent,
    /// Instance in which `handle` may continue. None if it needs its own.
    pub instance: Option<RoutedInstance<'a>>,
}

/// The instance in which a request's `route` ran, for the `handle` of the same request. It holds
/// one of the plugin's slots. So drop the instance as soon as the request is refused, and do not
/// wait for a client while you hold it.
pub struct RoutedInstance<'a> {
    pub(crate) plugin: &'a Plugin,
    pub(crate) head: Arc<RequestHead>,
    pub(crate) reusable: ReusableInstance<'a>,
}

impl RoutedInstance<'_> {
    /// Runs [`Plugin::handle`] in this instance and drops it. The routed request replaces the
    /// call's head.
    pub async fn handle(self, call: Call) -> Result<Result<Answer, Failure>, CallError> {
        self.plugin.handle_in(self.reusable, Call { head: self.head, ..call }).await
    }
}

impl Plugin {
    /// Requests the intent of a request; `kind` is the repository's. The call has no access to
    /// data. Returns any [`CallError`] except `Store`.
    #[boxed]
    pub async fn route(
        &self,
        kind: &str,
        head: &Arc<RequestHead>,
    ) -> Result<Result<Intent, Failure>, CallError> {
        Ok(self.route_to_handle(kind, head).await?.map(|routed| routed.intent))
    }

    /// Runs [`route`](Plugin::route) and keeps the instance for the request's `handle` if the
    /// intent allows it: a read without a body and without a check. The instance holds one of the
    /// plugin's slots until it is dropped.
    pub async fn route_to_handle(
        &self,
        kind: &str,
        head: &Arc<RequestHead>,
    ) -> Result<Result<Routed<'_>, Failure>, CallError> {
        let name = self.name("route", head, None);
        let state = || {
            let (plugin, limits) = (Arc::clone(&self.runner.plugin), Arc::clone(&self.runner.limits));
            HostState::within(Phase::Route, plugin, limits, Arc::clone(head))
        };
        let body = async |guest: &mut Guest, instance: &Instance| {
            let request = guest.data_mut().push(RequestRep)?;
            match self.code.exports.route(guest, instance, kind, borrow(&request)).await? {
                Ok(intent) => {
                    let intent = guest.data_mut().take(intent)?;
                    let intent = self.bounded(answer::intent(intent)?)?;
                    let (for_caller, looked) = (guest.data().uncacheable, guest.data().looked);
                    Ok(Ok(Intent { for_caller, looked, ..intent }))
                }
                Err(failure) => Ok(Err(answer::failure(failure)?)),
            }
        };
        let FinishedCall { result, instance } =
            self.runner.begin(name, state, &self.code.linked, body).await?;
        Ok(result.map(|intent| {
            let reusable = can_reuse_instance(&intent).then_some(instance);
            let instance =
                reusable.map(|reusable| RoutedInstance { plugin: self, head: Arc::clone(head), reusable });
            Routed { intent, instance }
        }))
    }

    /// Applies the smaller of the intent's own limit and the operator's. A named limit that the
    /// description lacks is an error of the plugin.
    fn bounded(&self, mut intent: Intent) -> Result<Intent, CallError> {
        let limits = &self.description.limits;
        if let (None, BodyPlan::Body { limit }, Some(declared)) =
            (&intent.limit, &intent.body, limits.max_manifest_bytes)
        {
            intent.limit = (*limit <= declared).then(|| MANIFEST.to_owned());
        }
        let most = match &intent.limit {
            None => limits.body(),
            Some(name) => match limits.named.get(name) {
                Some(limit) => Some(limit.max_bytes),
                None => {
                    return Err(CallError::BadAnswer(format!(
                        "the limit {name:?}, which its description does not declare"
                    )));
                }
            },
        };
        intent.body = intent.body.at_most(most);
        Ok(intent)
    }
}

/// Returns true if `handle` may run in the instance of `route`: the host neither waits for a client
/// nor calls `check` in between.
fn can_reuse_instance(intent: &Intent) -> bool {
    !intent.action.writes() && intent.body == BodyPlan::None && !intent.check
}
