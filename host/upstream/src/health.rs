//! What a proxy's upstream does at present, as this server saw it last: it answers, it refuses, or
//! it cannot be used.

use std::sync::{Mutex, OnceLock};

use packhouse_store::now_ms;
use serde::Serialize;
use utoipa::ToSchema;

use super::sync::lock;

/// Whether an upstream answers.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// It answered, or was not asked yet. That it has nothing at an address is an answer.
    #[default]
    Ok,
    /// It answered with a status that refuses the request, as 401 or 403.
    Refused,
    /// It does not answer, fails, limits the rate of requests, or sends what cannot be read.
    Unreachable,
}

/// The health of an upstream.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HealthView {
    /// Whether it answers.
    pub state: HealthState,
    /// Since when, in ms since 1970.
    pub since: i64,
    /// What happened, for people; null where there is nothing to say. It holds no credential.
    pub detail: Option<String>,
}

/// Keeps the health of one upstream.
pub(crate) struct Health {
    view: Mutex<HealthView>,
    /// What is wrong with how the upstream is set up, though it may answer: told where nothing else is.
    hint: OnceLock<String>,
}

impl Default for Health {
    fn default() -> Health {
        let view = HealthView { state: HealthState::Ok, since: now_ms(), detail: None };
        Health { view: Mutex::new(view), hint: OnceLock::new() }
    }
}

impl Health {
    /// Notes what the upstream does now.
    pub(crate) fn note(&self, state: HealthState, detail: Option<String>) {
        let mut view = lock(&self.view);
        if view.state != state {
            (view.state, view.since) = (state, now_ms());
        }
        view.detail = detail;
    }

    /// Notes what is wrong with how the upstream is set up. It holds until that is changed.
    pub(crate) fn note_hint(&self, hint: &str) {
        self.hint.get_or_init(|| hint.to_owned());
    }

    /// The health now.
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
        let health = Health::default();
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
