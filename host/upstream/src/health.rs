//! What a proxy's upstream does at present, as this server saw it last: it answers, it refuses, or it cannot be used.

use std::sync::{Mutex, PoisonError};

use packhouse_store::now_ms;
use serde::Serialize;
use utoipa::ToSchema;

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
pub(crate) struct Health(Mutex<HealthView>);

impl Default for Health {
    fn default() -> Health {
        Health(Mutex::new(HealthView { state: HealthState::Ok, since: now_ms(), detail: None }))
    }
}

impl Health {
    /// Notes what the upstream does now.
    pub(crate) fn note(&self, state: HealthState, detail: Option<String>) {
        let mut view = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if view.state != state {
            (view.state, view.since) = (state, now_ms());
        }
        view.detail = detail;
    }

    /// The health now.
    pub(crate) fn view(&self) -> HealthView {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    }
}
