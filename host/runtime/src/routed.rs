//! A plugin's `route`, and what comes of it for a request that goes on: the intent, and the instance in which `handle` may go on.

use std::sync::Arc;

use wasmtime::component::Instance;

use crate::answer::{self, Answer, Failure};
use crate::boxed;
use crate::call::Call;
use crate::description::MANIFEST;
use crate::error::CallError;
use crate::instance::{Begun, KeptInstance};
use crate::plugin::{Guest, Plugin, borrow};
use crate::request::{BodyPlan, Intent, RequestHead};
use crate::state::http::RequestRep;
use crate::state::{HostState, Phase};

/// The answer of [`Plugin::route_to_handle`].
pub struct Routed<'a> {
    /// What the request would do.
    pub intent: Intent,
    /// Where `handle` may go on; none where it must have an instance of its own.
    pub instance: Option<RoutedInstance<'a>>,
}

/// The instance that a request's `route` ran in, for this request's `handle`. It holds one of the plugin's places: drop it as soon as the
/// request is refused, and let no client be waited for meanwhile.
pub struct RoutedInstance<'a> {
    pub(crate) plugin: &'a Plugin,
    pub(crate) head: Arc<RequestHead>,
    pub(crate) kept: KeptInstance<'a>,
}

impl RoutedInstance<'_> {
    /// As [`Plugin::handle`], in this instance, which is gone afterwards. The request is the one that was routed, whatever the call's head.
    pub async fn handle(self, call: Call) -> Result<Result<Answer, Failure>, CallError> {
        self.plugin.handle_in(self.kept, Call { head: self.head, ..call }).await
    }
}

impl Plugin {
    /// Asks what a request would do; `kind` is the repository's. Nothing can be reached from it. Any [`CallError`] but `Store`.
    #[boxed]
    pub async fn route(
        &self,
        kind: &str,
        head: &Arc<RequestHead>,
    ) -> Result<Result<Intent, Failure>, CallError> {
        Ok(self.route_to_handle(kind, head).await?.map(|routed| routed.intent))
    }

    /// As [`route`](Plugin::route), and keeps the instance for the same request's `handle` where the intent lets it go on there: it
    /// reads, and there is neither a body to wait for nor a check. The instance holds one of the plugin's places until it is dropped.
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
        let Begun { result, instance } = self.runner.begin(name, state, &self.code.linked, body).await?;
        Ok(result.map(|intent| {
            let kept = goes_on(&intent).then_some(instance);
            let instance = kept.map(|kept| RoutedInstance { plugin: self, head: Arc::clone(head), kept });
            Routed { intent, instance }
        }))
    }

    /// The intent with the smaller of its own limits and the operator's. A limit that it names and the description does not is the
    /// plugin's mistake.
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
                None => return Err(CallError::BadAnswer(format!("a limit {name:?} that is not described"))),
            },
        };
        intent.body = intent.body.at_most(most);
        Ok(intent)
    }
}

/// Whether `handle` may go on in the instance of `route`: nobody has to be waited for between the two, and `check` does not come between.
fn goes_on(intent: &Intent) -> bool {
    !intent.action.writes() && intent.body == BodyPlan::None && !intent.check
}
