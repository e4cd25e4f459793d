//! Reports of rulings that warn or refuse: counters, lines in the log, and webhooks.

use packhouse_runtime::{PolicyFacts, PolicyPurpose, purpose_word};
use serde_json::json;

use super::{Judged, Question, Refusal};
use crate::App;

impl App {
    /// Counts and logs warnings and refusals, and notifies the organization's webhooks of refusals in the background. The same ruling
    /// about the same version is logged and notified once in a while.
    pub fn report_rulings(&self, question: &Question, versions: &[PolicyFacts], judged: &[Judged]) {
        if question.purpose == PolicyPurpose::Preview {
            return;
        }
        let place = &question.place;
        for (facts, judged) in versions.iter().zip(judged) {
            let (repository, package, version) = (&*place.name, &facts.name, &facts.version);
            for (rule, sentence) in &judged.warnings {
                count("warn", 1);
                if self.policies.told.is_news((place.repository.0, rule, package, version, sentence)) {
                    tracing::warn!(repository, package, version, rule, "a policy warns: {sentence}");
                }
            }
            let Some(refusal) = &judged.refusal else { continue };
            if !refusal.unavailable {
                count(refusal.word(), 1);
            }
            let (rule, word) = (&refusal.rule_name, refusal.word());
            let news = (place.repository.0, refusal.rule.0, package, version, purpose_word(question.purpose));
            if !self.policies.told.is_news(news) {
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
                "a policy refuses: {}",
                refusal.sentence
            );
            // A list leaves out versions that nobody asked for.
            if question.purpose != PolicyPurpose::List {
                self.notify_webhooks(question, facts, refusal);
            }
        }
    }

    fn notify_webhooks(&self, question: &Question, facts: &PolicyFacts, refusal: &Refusal) {
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
            let told = store.tell_policy_denied(place.organization, rule, place.repository, subject, data);
            if let Err(error) = told.await {
                tracing::warn!(%error, "webhooks could not be told of what a policy refused");
            }
        });
    }
}

/// Counts rulings of this kind.
pub(super) fn count(ruling: &'static str, versions: u64) {
    metrics::counter!("packhouse_policy_rulings_total", "ruling" => ruling).increment(versions);
}

/// Makes every kind of ruling known at 0, so that the first one is seen as an increase.
pub(super) fn announce() {
    for ruling in ["warn", "held", "denied", "unavailable"] {
        count(ruling, 0);
    }
}
