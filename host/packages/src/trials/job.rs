//! One request that was answered, put to a candidate aside.
//!
//! The candidate reads the repository as it is, a moment after the call that was answered. So where it answers otherwise, the active
//! component is asked once more: if that gives another answer than the client got, the records have changed meanwhile, or its answers
//! vary by themselves, and nothing can be said. If it gives the same, the difference is the candidate's, and that call is what is recorded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use packhouse_app::{App, recordings};
use packhouse_runtime::{
    Answer, Aside, Call, CallError, Failure, Intent, Plugin, RepositoryView, RequestHead, Services, Trial,
    add_time,
};
use packhouse_store::{RepositoryId, StoreError};

use super::compare::{Seen, same};
use super::retold::HeardServices;
use crate::heard::Heard;
use crate::prepared_response::{PreparedResponse, prepare};
use crate::services::CallServices;

/// What the client got.
pub(super) enum Expected {
    /// An answer that was kept.
    Kept(Arc<PreparedResponse>),
    /// An answer that the active component gave.
    Answer(Box<Answer>),
    /// Its refusal.
    Refused(Failure),
    /// It gave none: why, in a word.
    Failed(&'static str),
}

/// The repositories that a call is handed.
#[derive(Clone)]
pub(super) struct Views {
    pub(super) target: Option<RepositoryView>,
    pub(super) others: Vec<RepositoryView>,
}

/// See the module.
pub(super) struct Job {
    pub(super) app: Arc<App>,
    pub(super) trial: Arc<Trial>,
    pub(super) active: Arc<Plugin>,
    pub(super) repository: RepositoryId,
    /// Whether a credential decides who may see the answer.
    pub(super) private: bool,
    /// The repository's.
    pub(super) kind: String,
    pub(super) active_head: Arc<RequestHead>,
    /// The same as the candidate sees it.
    pub(super) head: Arc<RequestHead>,
    /// What the active component said that the request would do; none where it refused it then.
    pub(super) intent: Option<Intent>,
    /// What the active component was handed, and the same as the candidate sees it; none where it was handed nothing.
    pub(super) views: Option<[Views; 2]>,
    pub(super) expected: Expected,
    pub(super) services: Arc<CallServices>,
    pub(super) heard: Arc<Heard>,
    /// The time that the active component was told.
    pub(super) now: u64,
    /// What its calls took.
    pub(super) took: Option<Duration>,
}

/// What came of a comparison.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Equal,
    Different,
    Failed,
    Unanswered,
    Changed,
    /// The host could not say.
    Dropped,
}

impl Job {
    pub(super) async fn run(self) {
        let Ok(expected) = self.expected().await else {
            self.trial.count(|counts| counts.dropped += 1);
            return;
        };
        let heard = HeardServices::new(&self.services, &self.heard);
        let since = Instant::now();
        let seen = self.ask(&self.trial.candidate, &self.head, 1, Aside::default(), &heard).await;
        let took = since.elapsed();
        let verdict = match seen {
            Err(error) if error.is_temporary() => Verdict::Dropped,
            Err(error) => self.judge_failure(&expected, &error).await,
            Ok(seen) => self.judge(&expected, &seen, &heard).await,
        };
        self.trial.count(|counts| {
            if verdict == Verdict::Dropped {
                counts.dropped += 1;
                return;
            }
            counts.calls += 1;
            add_time(&mut counts.candidate, took);
            if let Some(took) = self.took {
                add_time(&mut counts.active, took);
            }
            *match verdict {
                Verdict::Different => &mut counts.different,
                Verdict::Failed => &mut counts.failed,
                Verdict::Unanswered => &mut counts.unanswered,
                Verdict::Changed => &mut counts.changed,
                Verdict::Equal | Verdict::Dropped => &mut counts.equal,
            } += 1;
        });
    }

    /// What the client got, as it is compared.
    async fn expected(&self) -> Result<Seen, StoreError> {
        Ok(match &self.expected {
            Expected::Kept(response) => Seen::Response(Arc::clone(response)),
            Expected::Answer(answer) => {
                Seen::Response(Arc::new(prepare((**answer).clone(), self.private).await?))
            }
            Expected::Refused(failure) => Seen::Refused(failure.clone()),
            Expected::Failed(kind) => Seen::Failed(kind),
        })
    }

    async fn judge(&self, expected: &Seen, seen: &Seen, heard: &HeardServices) -> Verdict {
        match same(expected, seen).await {
            None => Verdict::Changed,
            Some(true) => Verdict::Equal,
            Some(false) if heard.is_unanswered() => Verdict::Unanswered,
            Some(false) => self.confirmed(expected, false).await,
        }
    }

    /// The candidate gave no answer, which is no difference where the active component gave none for the same reason.
    async fn judge_failure(&self, expected: &Seen, error: &CallError) -> Verdict {
        match expected {
            Seen::Failed(kind) if *kind == error.kind() => Verdict::Equal,
            _ => {
                self.confirmed(expected, true).await;
                Verdict::Failed
            }
        }
    }

    /// Asks the active component once more, and keeps what it did then if it gives the same answer again.
    async fn confirmed(&self, expected: &Seen, failed: bool) -> Verdict {
        let aside = if self.trial.wants_recording(failed) { Aside::recorded() } else { Aside::default() };
        let heard = HeardServices::new(&self.services, &self.heard);
        let aside = Arc::new(aside);
        let again = self.ask_aside(&self.active, &self.active_head, 0, &aside, &heard).await;
        let again = again.unwrap_or_else(|error| Seen::Failed(error.kind()));
        if same(expected, &again).await != Some(true) {
            return Verdict::Changed;
        }
        if let Some(finished) = aside.take_recording() {
            let packed = recordings::pack(finished).map_err(|error| StoreError::Invalid(error.to_string()));
            let kept = match packed {
                Ok(new) => {
                    self.app.store.keep_trial_recording(self.trial.id, self.repository, failed, new).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = kept {
                tracing::warn!(%error, "a recording of what a candidate answered otherwise could not be kept");
            }
        }
        Verdict::Different
    }

    async fn ask(
        &self,
        plugin: &Plugin,
        head: &Arc<RequestHead>,
        side: usize,
        aside: Aside,
        heard: &Arc<HeardServices>,
    ) -> Result<Seen, CallError> {
        self.ask_aside(plugin, head, side, &Arc::new(aside), heard).await
    }

    /// Puts the request to a component: to the active one (`side` 0), or to the candidate (1).
    async fn ask_aside(
        &self,
        plugin: &Plugin,
        head: &Arc<RequestHead>,
        side: usize,
        aside: &Arc<Aside>,
        heard: &Arc<HeardServices>,
    ) -> Result<Seen, CallError> {
        let head = Arc::new(RequestHead { aside: Some(Arc::clone(aside)), ..(**head).clone() });
        let routed = match plugin.route_to_handle(&self.kind, &head).await? {
            Ok(routed) => routed,
            Err(failure) => return Ok(Seen::Refused(failure)),
        };
        let views = self.views.as_ref().and_then(|views| views.get(side));
        let (Some(intent), Some(views)) = (&self.intent, views) else { return Ok(Seen::OtherIntent) };
        if !is_same(intent, &routed.intent) {
            return Ok(Seen::OtherIntent);
        }
        let Views { target, others } = views.clone();
        let services = Services::of(heard);
        let now = Some(self.now);
        let call = Call { target, others, services, now, ..Call::new(Arc::clone(&head), intent.action) };
        let handled = match routed.instance {
            Some(instance) => instance.handle(call).await?,
            None => plugin.handle(call).await?,
        };
        Ok(match handled {
            Ok(answer) => Seen::Response(Arc::new(prepare(answer, self.private).await?)),
            Err(failure) => Seen::Refused(failure),
        })
    }
}

/// Whether both ask for the same rights and repositories.
fn is_same(one: &Intent, other: &Intent) -> bool {
    one.action == other.action
        && one.body == other.body
        && one.subject == other.subject
        && one.also_read == other.also_read
        && one.for_publish == other.for_publish
        && one.packages == other.packages
        && one.many_packages == other.many_packages
}
