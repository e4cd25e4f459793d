//! Trials: a component beside what its format runs, as a shadow or as a canary. Each judges what is asked for; who may ask it is judged by
//! the caller. What a server counts goes to the database each second, and there a canary ends whose failures are too many.

use std::sync::Arc;
use std::time::Duration;

use packhouse_runtime::{PluginSet, Trial, TrialMode};
use packhouse_store::{AuditEvent, NewTrial, PluginState, StoreError, TrialCounts, TrialRow};
use serde_json::json;

use super::manage::{ATTEMPTS, with_detail};
use super::{Changes, PluginError};
use crate::App;
use crate::boxed;

/// How often what was counted is added up.
const ADD_UP: Duration = Duration::from_secs(1);
/// Failures after which a canary is taken back where nobody said how many.
pub const MAX_FAILURES: u64 = 10;

impl App {
    /// Tries a component beside what its format runs, in place of what was tried before. `Missing` where there is none, or a repository that
    /// is not there or of another format; `Refused` where it is of another format or cannot be run here; `AsksMore` for a canary that
    /// asks more than what runs, which was not accepted; `Conflict` where the format runs nothing, or others change the same.
    pub async fn try_plugin(
        &self,
        new: NewTrial,
        accept_changes: bool,
        audit: impl Fn(&str) -> Option<AuditEvent>,
    ) -> Result<TrialRow, PluginError> {
        let format = new.format.clone();
        for _ in 0..ATTEMPTS {
            let state = self.store.plugin_state().await?;
            let told = self.told_of(&format, &new.digest).await?;
            self.judge_signature(&state, &new.digest).await?;
            let Some(active) = self.effective(&state, &format) else {
                let sentence = format!("the format {format} runs nothing beside which it could be tried");
                return Err(PluginError::Conflict(sentence));
            };
            if new.mode == TrialMode::Canary.word() {
                let changes = Changes::between(&self.told(&active).await?, &told);
                if !accept_changes && !changes.is_empty() {
                    return Err(PluginError::AsksMore(changes));
                }
            }
            for id in new.repositories.iter().flatten() {
                let row = self.store.find_repository(new.organization, *id).await?;
                if row.is_none_or(|row| row.format != format) {
                    return Err(PluginError::Missing(format!("repository {id} of the format {format}")));
                }
            }
            self.can_run(&format, &new.digest).await?;
            let taken_in = self.of_folder(&format, Some(&new.digest)).await?;
            let detail = json!({"digest": new.digest, "mode": new.mode, "percent": new.percent});
            let event = with_detail(audit(&format), &detail);
            if self.store.begin_trial(new.clone(), state.number, taken_in, event).await?.is_some() {
                self.follow_plugins().await?;
                return self.find_trial(&format).await;
            }
        }
        Err(PluginError::Conflict("others change the same at this moment: look again".to_owned()))
    }

    /// The trial of a format, which may have been taken back, with what all servers counted until a second ago. `Missing` where there is
    /// none.
    #[boxed]
    pub async fn find_trial(&self, format: &str) -> Result<TrialRow, PluginError> {
        let found = self.store.find_trial(format).await?;
        found.ok_or_else(|| PluginError::Missing(format!("trial of the format {format}")))
    }

    /// Takes the trial of a format back. `Missing` where there is none.
    #[boxed]
    pub async fn end_trial(&self, format: &str, audit: Option<AuditEvent>) -> Result<(), PluginError> {
        if !self.store.end_trial(format, audit).await? {
            return Err(PluginError::Missing(format!("trial of the format {format}")));
        }
        Ok(self.follow_plugins().await?)
    }

    /// The trials of this state that can be run here. One that goes on keeps what it counts.
    pub(super) async fn trials_of(&self, state: &PluginState) -> Result<Vec<Arc<Trial>>, StoreError> {
        let before = self.runtime.current();
        let mut trials = Vec::new();
        for row in state.trials.iter().filter(|row| row.ended_at.is_none()) {
            if let Some(same) = before.trials().iter().find(|trial| trial.id == row.id) {
                trials.push(Arc::clone(same));
                continue;
            }
            let candidate = self.component(state, &row.new.digest).await?;
            let candidate = candidate.filter(|plugin| plugin.description().format == row.new.format);
            trials.extend(candidate.and_then(|plugin| Trial::of(row, plugin)).map(Arc::new));
        }
        Ok(trials)
    }

    /// Adds what this server counted to what others did, and takes back what failed too often.
    async fn add_up_trials(&self) -> Result<(), StoreError> {
        let current = self.runtime.current();
        let mut taken_back = false;
        for trial in current.trials() {
            self.add_up(trial).await?;
            if trial.is_over() {
                taken_back |= self.take_back(trial).await?;
            }
        }
        if taken_back { self.follow_plugins().await } else { Ok(()) }
    }

    /// Adds what this server counted of trials that go on no more.
    pub(super) async fn add_up_ended(&self, before: &PluginSet, now: &PluginSet) {
        let goes_on = |trial: &&Arc<Trial>| now.trials().iter().any(|other| other.id == trial.id);
        for trial in before.trials().iter().filter(|trial| !goes_on(trial)) {
            if let Err(error) = self.add_up(trial).await {
                tracing::debug!(%error, "what was counted last of a trial could not be added up");
            }
        }
    }

    async fn add_up(&self, trial: &Trial) -> Result<(), StoreError> {
        let counts = trial.take_counts();
        if counts == TrialCounts::default() {
            return Ok(());
        }
        match self.store.add_trial_counts(trial.id, counts).await {
            Ok(failed) => {
                measure(trial, &counts);
                trial.failed(failed.unwrap_or_default());
            }
            Err(error) => {
                trial.put_back(&counts);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn take_back(&self, trial: &Trial) -> Result<bool, StoreError> {
        let (format, digest) = (trial.candidate.description().format.as_str(), trial.candidate.digest());
        let event = self.first_organization().await?.map(|organization| AuditEvent {
            organization,
            actor: "packhouse".to_owned(),
            credential: String::new(),
            action: "take_plugin_back".to_owned(),
            subject: format.to_owned(),
            address: String::new(),
            request_id: String::new(),
            detail: json!({"digest": digest.to_string(), "because": "too many calls failed"}).to_string(),
        });
        let done = self.store.take_trial_back(trial.id, event).await?;
        if done {
            tracing::warn!(format, %digest, "a canary is taken back: too many of its calls failed");
        }
        Ok(done)
    }
}

/// Adds up until the stop, and once more then.
#[boxed]
pub async fn add_up_trials(app: Arc<App>) {
    loop {
        let stopping = tokio::select! {
            () = app.stop.cancelled() => true,
            () = app.plugins.failing().notified() => false,
            () = tokio::time::sleep(ADD_UP) => false,
        };
        if let Err(error) = app.add_up_trials().await {
            tracing::debug!(%error, "what was counted of trials could not be added up; the next time will do");
        }
        if stopping {
            return;
        }
    }
}

/// Requests of a trial by outcome.
const REQUESTS: &str = "packhouse_plugin_trial_requests_total";

/// Makes every outcome of a trial known at 0, so that the first difference is seen as an increase.
pub(super) fn announce(trial: &Trial) {
    measure(trial, &TrialCounts::default());
}

/// Counts for Prometheus what this server saw.
fn measure(trial: &Trial, counts: &TrialCounts) {
    let format = &trial.candidate.description().format;
    for (outcome, count) in [
        ("equal", counts.equal),
        ("different", counts.different),
        ("changed", counts.changed),
        ("unanswered", counts.unanswered),
        ("dropped", counts.dropped),
        ("failed", counts.failed),
        (
            "answered",
            if trial.mode == TrialMode::Canary { counts.calls.saturating_sub(counts.failed) } else { 0 },
        ),
    ] {
        let labels = [
            ("plugin", format.clone()),
            ("mode", trial.mode.word().to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        metrics::counter!(REQUESTS, &labels).increment(count);
    }
}
