//! Reports of warnings and refusals by policies: counters, log lines and webhooks.

use packhouse_runtime::{PolicyFacts, PolicyPurpose, purpose_word};
use serde_json::json;

use super::{PolicyRefusal, Question, VersionJudgement};
use crate::App;

impl App {
    /// Counts and logs warnings and refusals. Notifies the organization's webhooks of refusals in
    /// the background. A ruling that repeats for the same version is logged and sent to webhooks
    /// only after a pause.
    pub fn report_rulings(&self, question: &Question, versions: &[PolicyFacts], judged: &[VersionJudgement]) {
        if question.purpose == PolicyPurpose::Preview {
            return;
        }
        let place = &question.place;
        for (facts, judged) in versions.iter().zip(judged) {
            let (repository, package, version) = (&*place.name, &facts.name, &facts.version);
            for (rule, sentence) in &judged.warnings {
                count("warn", 1);
                if self.policies.reported.is_news((place.repository.0, rule, package, version, sentence)) {
                    tracing::warn!(repository, package, version, rule, "policy warning: {sentence}");
                }
            }
            let Some(refusal) = &judged.refusal else { continue };
            if !refusal.unavailable {
                count(refusal.word(), 1);
            }
            let (rule, word) = (&refusal.rule_name, refusal.word());
            let news = (place.repository.0, refusal.rule.0, package, version, purpose_word(question.purpose));
            if !self.policies.reported.is_news(news) {
                continue;
            }
            let request_id = &*question.head.request_id;
            tracing::warn!(
                repository,
                package,
                version,
                rule,
                request_id,
                outcome = word,
                "policy refusal: {}",
                refusal.sentence
            );
            // A list only omits refused versions, and the client did not request any of them.
            if question.purpose != PolicyPurpose::List {
                self.notify_webhooks(question, facts, refusal);
            }
        }
    }

    fn notify_webhooks(&self, question: &Question, facts: &PolicyFacts, refusal: &PolicyRefusal) {
        let place = question.place.clone();
        let data = json!({
            "policy": {"id": refusal.rule.to_string(), "name": refusal.rule_name},
            "repository": {"id": place.repository.to_string(), "name": &*place.name, "format": place.format},
            "package": facts.name, "version": facts.version, "purpose": purpose_word(question.purpose),
            "ruling": refusal.word(), "because": refusal.sentence, "by": question.caller,
        });
        let (store, rule) = (self.store.clone(), refusal.rule);
        let subject = format!("{}/{}@{}", place.name, facts.name, facts.version);
        tokio::spawn(async move {
            let queued =
                store.notify_policy_denied(place.organization, rule, place.repository, subject, data);
            if let Err(error) = queued.await {
                tracing::warn!(%error, "could not queue webhook events for a policy refusal");
            }
        });
    }
}

/// Counts rulings of this kind.
pub(super) fn count(ruling: &'static str, versions: u64) {
    metrics::counter!("packhouse_policy_rulings_total", "ruling" => ruling).increment(versions);
}

/// Creates the counter for every kind of ruling with the value 0, so that the first ruling is an
/// increase.
pub(super) fn announce() {
    for ruling in ["warn", "held", "denied", "unavailable"] {
        count(ruling, 0);
    }
}
