//! The current status of a proxy's upstream, as this server last observed it: it answers, it
//! refuses, or it cannot be used.

use std::sync::{Mutex, OnceLock};

use packhouse_store::now_ms;
use serde::Serialize;
use utoipa::ToSchema;

use super::sync::lock;

#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// It answered, or was not asked yet. "Not found" counts as an answer.
    #[default]
    Ok,
    /// It answered with a status that refuses the request, such as 401 or 403.
    Refused,
    /// It does not answer, fails, limits the rate of requests, or sends unreadable responses.
    Unreachable,
}

/// The health of an upstream.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HealthView {
    pub state: HealthState,
    /// Start of the current status, in ms since 1970.
    pub since: i64,
    /// Description for people; null if there is nothing to report. It contains no credential.
    pub detail: Option<String>,
}

/// Stores the health of one upstream.
pub(crate) struct UpstreamHealth {
    view: Mutex<HealthView>,
    /// A problem with the configuration of an upstream that may still answer. The view shows the
    /// problem if there is no other detail.
    hint: OnceLock<String>,
}

impl Default for UpstreamHealth {
    fn default() -> UpstreamHealth {
        let view = HealthView { state: HealthState::Ok, since: now_ms(), detail: None };
        UpstreamHealth { view: Mutex::new(view), hint: OnceLock::new() }
    }
}

impl UpstreamHealth {
    pub(crate) fn note(&self, state: HealthState, detail: Option<String>) {
        let mut view = lock(&self.view);
        if view.state != state {
            (view.state, view.since) = (state, now_ms());
        }
        view.detail = detail;
    }

    /// Records a problem with the upstream's configuration. The problem stays until the
    /// configuration changes.
    pub(crate) fn note_hint(&self, hint: &str) {
        self.hint.get_or_init(|| hint.to_owned());
    }

    pub(crate) fn view(&self) -> HealthView {
        let view = lock(&self.view).clone();
        HealthView { detail: view.detail.or_else(|| self.hint.get().cloned()), ..view }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_lasts_since_it_began() {
        let health = UpstreamHealth::default();
        health.note(HealthState::Refused, Some("403 for a".to_owned()));
        let since = health.view().since;
        health.note(HealthState::Refused, Some("401 for b".to_owned()));
        let view = health.view();
        assert_eq!((view.state, view.since), (HealthState::Refused, since));
        assert_eq!(view.detail.as_deref(), Some("401 for b"));
        health.note(HealthState::Ok, None);
        assert_eq!((health.view().state, health.view().detail), (HealthState::Ok, None));
        health.note_hint("not shown");
        health.note(HealthState::Ok, None);
        assert_eq!(health.view().detail.as_deref(), Some("not shown"));
    }
}
