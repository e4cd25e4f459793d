//! A component that is tried beside what a format runs: what of a request goes to it, and what is counted.
//!
//! A canary's calls are the clients' own, and are counted here. A shadow is put to what was answered: the answer, and what the call was
//! told by others, go into a short queue, and a thread of its own compares (`queue`, `job`, `compare`, `retold`).

mod compare;
mod job;
mod queue;
mod retold;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use packhouse_app::App;
use packhouse_runtime::{
    Action, Answer, BodyPlan, CallError, Failure, Intent, Plugin, RepositoryView, RequestHead, Trial,
    TrialMode, add_time,
};
use packhouse_store::RepositoryRow;

use crate::cache_entry::CacheEntry;
use crate::heard::Heard;
use crate::services::{CallServices, Caller};

use job::{Expected, Job, Views};
pub(crate) use queue::Shadows;

/// The trial that a request's repository is part of.
pub(crate) struct OnTrial {
    trial: Arc<Trial>,
    /// Whether the candidate answers.
    is_candidate: bool,
    shadow: Option<Shadowed>,
    /// What the request's calls took before, in µs.
    spent_us: AtomicU64,
}

/// What a trial needs of a request besides.
pub(crate) struct TriedRequest<'a> {
    pub app: &'a Arc<App>,
    /// Who answers.
    pub plugin: &'a Arc<Plugin>,
    pub head: &'a Arc<RequestHead>,
    /// What it is about, where the caller may know of it.
    pub repository: Option<&'a RepositoryRow>,
    /// A group's members, whoever may read them.
    pub members: Vec<&'a RepositoryRow>,
    /// Whether the caller may read one of them.
    pub has_members: bool,
    /// Whether a credential decides who may see the answer.
    pub private: bool,
    pub caller: Caller,
}

/// What a shadow needs of a request.
struct Shadowed {
    queue: Arc<Shadows>,
    /// The request as the candidate sees it.
    head: Arc<RequestHead>,
    heard: Arc<Heard>,
    /// The time that both are told.
    now: u64,
}

/// The repositories that a call is handed.
pub(crate) struct HandedViews {
    target: Option<RepositoryView>,
    others: Vec<RepositoryView>,
}

impl OnTrial {
    /// For a request of this method. `head` makes it as the candidate sees it.
    pub(crate) fn begin(
        (trial, is_candidate): (Arc<Trial>, bool),
        queue: &Arc<Shadows>,
        method: &Method,
        head: impl FnOnce(&Trial) -> RequestHead,
    ) -> OnTrial {
        let shadowed = trial.mode == TrialMode::Shadow && matches!(*method, Method::GET | Method::HEAD);
        let shadow = shadowed.then(|| Shadowed {
            queue: Arc::clone(queue),
            head: Arc::new(head(&trial)),
            heard: Arc::default(),
            now: packhouse_store::now_ms().unsigned_abs(),
        });
        OnTrial { trial, is_candidate, shadow, spent_us: AtomicU64::new(0) }
    }

    /// The shadow that answers of this request are compared with, by its number.
    pub(crate) fn shadow(&self) -> Option<i64> {
        self.shadow.as_ref().map(|_| self.trial.id.0)
    }

    /// What notes what the call is told by others.
    pub(crate) fn heard(&self) -> Option<Arc<Heard>> {
        self.shadow.as_ref().map(|shadow| Arc::clone(&shadow.heard))
    }

    /// The time that the plugin is told; none is that at which it asks.
    pub(crate) fn now(&self) -> Option<u64> {
        self.shadow.as_ref().map(|shadow| shadow.now)
    }

    /// What the call is handed, where that is needed later.
    pub(crate) fn handed(
        &self,
        target: Option<&RepositoryView>,
        others: &[RepositoryView],
    ) -> Option<HandedViews> {
        self.shadow.as_ref().map(|_| HandedViews { target: target.cloned(), others: others.to_vec() })
    }

    /// A call ended after which another comes.
    pub(crate) fn goes_on(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.spent_us.fetch_add(us, Ordering::Relaxed);
    }

    /// `route` or `check` ended without the request going on.
    pub(crate) fn refused(
        &self,
        request: &TriedRequest<'_>,
        end: Result<&Failure, &CallError>,
        took: Duration,
    ) {
        let failed = end.map_or_else(is_fault, |failure| is_fault_of(failure.status));
        let took = self.count(request, failed, took);
        let expected = match end {
            Ok(failure) => Expected::Refused(failure.clone()),
            Err(error) if error.is_callers() || error.is_temporary() => return,
            Err(error) => Expected::Failed(error.kind()),
        };
        if let Some(shadow) = &self.shadow {
            self.put(shadow, request, Told { intent: None, handed: None, expected, took: Some(took) });
        }
    }

    /// `handle` ended.
    pub(crate) fn handled(
        &self,
        request: &TriedRequest<'_>,
        intent: &Intent,
        handed: Option<HandedViews>,
        handled: &Result<Result<Answer, Failure>, CallError>,
        services: &Arc<CallServices>,
        took: Duration,
    ) {
        let failed = match handled {
            Ok(Ok(answer)) => is_fault_of(answer.status),
            Ok(Err(failure)) => is_fault_of(failure.status),
            Err(error) => is_fault(error),
        };
        let took = self.count(request, failed, took);
        let Some(shadow) = &self.shadow else { return };
        // What is the caller's own is nobody else's to see, and what would change something is nothing for a shadow.
        if services.asked_identity() || intent.action.writes() || intent.body != BodyPlan::None {
            return;
        }
        let expected = match handled {
            Ok(Ok(answer)) if answer.confidential => return,
            Ok(Ok(answer)) => Expected::Answer(Box::new(answer.clone())),
            Ok(Err(failure)) => Expected::Refused(failure.clone()),
            Err(error) if error.is_callers() || error.is_temporary() => return,
            Err(error) => Expected::Failed(error.kind()),
        };
        let intent = Some(intent.clone());
        self.put(shadow, request, Told { intent, handed, expected, took: Some(took) });
    }

    /// A kept answer is sent: once in a trial it is compared too. Not where it was made of what an upstream said, which is told no second
    /// time, nor where members had to be selected for it.
    pub(crate) fn kept(&self, request: &TriedRequest<'_>, entry: &CacheEntry) {
        let Some(shadow) = &self.shadow else { return };
        if entry.compared.swap(self.trial.id.0, Ordering::Relaxed) == self.trial.id.0 {
            return;
        }
        let Some(row) = request.repository else { return };
        let is_alone = !request.has_members && entry.intent.also_read.is_empty();
        if !is_alone || !entry.response.cache_uses.is_empty() || entry.intent.action != Action::Read {
            return;
        }
        let target = Some(shadow.queue.views.of(row, request.plugin));
        self.put(
            shadow,
            request,
            Told {
                intent: Some((*entry.intent).clone()),
                handed: Some(HandedViews { target, others: Vec::new() }),
                expected: Expected::Kept(Arc::clone(&entry.response)),
                took: None,
            },
        );
    }

    /// Counts a canary's request, and that of others beside it: what all its calls took.
    fn count(&self, request: &TriedRequest<'_>, failed: bool, took: Duration) -> Duration {
        let took = took + Duration::from_micros(self.spent_us.load(Ordering::Relaxed));
        if self.trial.mode == TrialMode::Canary {
            let is_candidate = self.is_candidate;
            self.trial.count(|counts| {
                if is_candidate {
                    counts.calls += 1;
                    counts.failed += u64::from(failed);
                    add_time(&mut counts.candidate, took);
                } else {
                    add_time(&mut counts.active, took);
                }
            });
            if is_candidate && failed && self.trial.is_over() {
                request.app.plugins.failing().notify_one();
            }
        }
        took
    }

    fn put(&self, shadow: &Shadowed, request: &TriedRequest<'_>, told: Told) {
        let Some(row) = request.repository else { return };
        let Told { intent, handed, expected, took } = told;
        // Not those of the call: they may hold its permits to wait for upstreams.
        let packages = intent.as_ref().map(|intent| intent.packages.clone()).unwrap_or_default();
        let services = CallServices::new(request.app, request.plugin, request.caller.clone(), packages, None);
        let candidate = &self.trial.candidate;
        let as_seen = |view: &RepositoryView| {
            let mut rows = std::iter::once(row).chain(request.members.iter().copied());
            match rows.find(|row| row.id == view.id) {
                Some(row) => shadow.queue.views.of(row, candidate),
                None => view.clone(),
            }
        };
        let views = handed.map(|HandedViews { target, others }| {
            let seen = (target.as_ref().map(as_seen), others.iter().map(as_seen).collect());
            [Views { target, others }, Views { target: seen.0, others: seen.1 }]
        });
        shadow.queue.put(Job {
            app: Arc::clone(request.app),
            trial: Arc::clone(&self.trial),
            active: Arc::clone(request.plugin),
            repository: row.id,
            private: request.private,
            kind: row.kind.clone(),
            active_head: Arc::clone(request.head),
            head: Arc::clone(&shadow.head),
            intent,
            views,
            expected,
            services,
            heard: Arc::clone(&shadow.heard),
            now: shadow.now,
            took,
        });
    }
}

/// What a request came to.
struct Told {
    intent: Option<Intent>,
    handed: Option<HandedViews>,
    expected: Expected,
    /// What its calls took; none of a kept answer.
    took: Option<Duration>,
}

/// Whether a call that gave no answer is its component's fault.
fn is_fault(error: &CallError) -> bool {
    !error.is_callers() && !error.is_temporary()
}

/// Whether an answer of this status is its component's fault. 502, 503 and 504 tell of others.
fn is_fault_of(status: u16) -> bool {
    status >= 500 && !matches!(status, 502..=504)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_fails_is_no_fault_of_a_component() {
        for (status, fault) in
            [(200, false), (404, false), (500, true), (501, true), (502, false), (504, false), (505, true)]
        {
            assert_eq!(is_fault_of(status), fault, "{status}");
        }
        assert!(is_fault(&CallError::Trap("x".to_owned())) && !is_fault(&CallError::Busy(1)));
    }
}
