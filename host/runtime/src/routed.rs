//! What came of `route` for a request that goes on: the intent, and the instance in which `handle` may go on.

use std::sync::Arc;

use crate::answer::{Answer, Failure};
use crate::call::Call;
use crate::error::CallError;
use crate::instance::KeptInstance;
use crate::plugin::Plugin;
use crate::request::{BodyPlan, Intent, RequestHead};

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

/// Whether `handle` may go on in the instance of `route`: nobody has to be waited for between the two, and `check` does not come between.
pub(crate) fn goes_on(intent: &Intent) -> bool {
    !intent.action.writes() && intent.body == BodyPlan::None && !intent.check
}
