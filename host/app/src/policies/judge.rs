//! Judging versions by rules. Every rule that applies to a version judges it, and the strictest
//! ruling decides. An exception exempts a version from a rule.

use std::sync::Arc;

use packhouse_runtime::{
    IgnoredFact, MAX_BATCH, OptionalFact, PolicyContext, PolicyFacts, PolicyPurpose, RequestHead, Ruling,
};
use packhouse_store::{
    Digest, OrganizationId, RepositoryId, RuleId, RuleMode, SignedStatement, StoreError, Version,
};

use super::facts::RequiredFacts;
use super::recorded::EndedCall;
use super::report::count;
use super::{Rule, RuleSet, facts};
use crate::App;
use crate::boxed;

/// Approximate maximum size of the facts in one call, in bytes.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// Repository that contains the judged versions.
#[derive(Clone, Debug)]
pub struct JudgedRepository {
    pub organization: OrganizationId,
    pub repository: RepositoryId,
    pub name: Arc<str>,
    /// `hosted` or `proxy`.
    pub kind: String,
    pub format: String,
    /// Address of a proxy's upstream.
    pub upstream: Option<String>,
}

/// The file that a client requested. Statements about other files, or about earlier content of this
/// file, do not apply to it.
#[derive(Clone, Debug)]
pub struct RequestedFile {
    pub path: String,
    /// Expected digests, if any are known.
    pub digests: Vec<Digest>,
}

impl RequestedFile {
    /// Reports whether a statement about this path and digest applies to this file.
    pub(super) fn is_subject(&self, path: &str, digest: &Digest) -> bool {
        let mut known = self.digests.iter().filter(|known| known.algorithm == digest.algorithm);
        (path.is_empty() || path == self.path) && known.all(|known| known == digest)
    }
}

/// Input of a judgement: the repository, the purpose, and the request that caused it.
#[derive(Clone, Debug)]
pub struct Question {
    pub place: JudgedRepository,
    pub purpose: PolicyPurpose,
    /// The requested file; `None` if the request is not for a single file.
    pub file: Option<RequestedFile>,
    /// Name of the caller, which may be logged and sent to webhooks.
    pub caller: Option<String>,
    /// The request that caused the judgement, for logs.
    pub head: Arc<RequestHead>,
    /// The current time, in ms since 1970.
    pub now: i64,
}

/// Result of all rules for one version.
#[derive(Clone, Debug, Default)]
pub struct VersionJudgement {
    /// Reason why the version is refused; `None` if it passes.
    pub refusal: Option<PolicyRefusal>,
    /// Warnings, each as the rule's name and a sentence.
    pub warnings: Vec<(String, String)>,
    /// Time at which the judgement may change even if nothing else changes, in ms since 1970.
    pub until: Option<i64>,
}

/// Reason why a version is refused.
#[derive(Clone, Debug)]
pub struct PolicyRefusal {
    pub rule: RuleId,
    pub rule_name: String,
    /// True if the version is held: the rule may allow it later.
    pub held: bool,
    /// True if the rule could not judge the version.
    pub unavailable: bool,
    /// Reason that the client gets to read.
    pub sentence: String,
}

impl PolicyRefusal {
    /// Returns the reason and the name of the rule.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{} (policy {})", self.sentence.trim_end_matches('.'), self.rule_name)
    }

    /// Returns the kind of refusal as one word, for logs and events.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (self.unavailable, self.held) {
            (true, _) => "policy_unavailable",
            (false, true) => "held",
            (false, false) => "denied",
        }
    }
}

impl VersionJudgement {
    fn note_until(&mut self, at: Option<i64>) {
        self.until = self.until.into_iter().chain(at).min();
    }

    fn take(&mut self, rule: &Rule, ruling: RuleOutcome) {
        let name = || rule.row.name.clone();
        let (sentence, held, unavailable) = match ruling {
            RuleOutcome::Ruled(Ruling::Allow) => return,
            RuleOutcome::Ruled(Ruling::Warn(sentence)) => return self.warnings.push((name(), sentence)),
            RuleOutcome::Ruled(Ruling::Hold { sentence, until }) => {
                self.note_until(until.map(|at| i64::try_from(at).unwrap_or(i64::MAX)));
                (sentence, true, false)
            }
            RuleOutcome::Ruled(Ruling::Deny(sentence)) => (sentence, false, false),
            RuleOutcome::Failed(sentence) => (sentence, false, true),
        };
        if rule.row.mode == RuleMode::Warn {
            return self.warnings.push((name(), sentence));
        }
        let refusal = PolicyRefusal { rule: rule.row.id, rule_name: name(), held, unavailable, sentence };
        // A denial takes precedence over a hold.
        let is_stricter = self.refusal.as_ref().is_none_or(|before| before.held && !held);
        if is_stricter {
            self.refusal = Some(refusal);
        }
    }
}

/// Versions that are being published.
pub struct PublishedVersions<'a> {
    /// The versions that will be listed.
    pub versions: &'a [&'a Version],
    /// Statements that are published together with the versions.
    pub statements: &'a [&'a SignedStatement],
}

/// A rule, and the indexes of the versions that it has to judge.
struct RuleTargets<'a> {
    rule: &'a Rule,
    places: Vec<usize>,
}

/// Returns the facts that these rules use.
fn required_facts(targets: &[RuleTargets<'_>]) -> RequiredFacts {
    let mut required = RequiredFacts::default();
    for RuleTargets { rule, places } in targets {
        // A rule whose component is missing denies every version without looking at facts.
        let Ok(component) = &rule.component else { continue };
        if !component.description().ignores(IgnoredFact::Provenance) {
            required.provenance.extend(places);
        }
        if !component.description().ignores(IgnoredFact::Advisories) {
            required.advisories.extend(places);
        }
    }
    required
}

/// Result of one rule for one version.
enum RuleOutcome {
    Ruled(Ruling),
    Failed(String),
}

impl App {
    /// Judges the versions by the rules of this set. Returns one judgement for each version, in the
    /// same order. Refuses a version that a rule cannot judge.
    #[boxed]
    pub async fn judge(
        &self,
        set: &RuleSet,
        question: &Question,
        versions: Vec<PolicyFacts>,
    ) -> Result<Vec<VersionJudgement>, StoreError> {
        let rules: Vec<&Rule> =
            set.rules.iter().filter(|rule| rule.reaches(question.place.repository)).collect();
        self.judge_by(&rules, question, versions).await
    }

    /// Judges versions that are being published, together with the statements in the publish.
    #[boxed]
    pub async fn judge_publish(
        &self,
        set: &RuleSet,
        question: &Question,
        published: &PublishedVersions<'_>,
    ) -> Result<Vec<VersionJudgement>, StoreError> {
        let rules: Vec<&Rule> =
            set.rules.iter().filter(|rule| rule.reaches(question.place.repository)).collect();
        let now = u64::try_from(question.now).unwrap_or_default();
        let of_version = |version: &&Version| facts::of_version(version, version.published.or(Some(now)));
        let versions = published.versions.iter().map(of_version).collect();
        self.judge_all(&rules, question, Some(published), versions).await
    }

    /// Judges by these rules, even if they do not apply to the repository.
    #[boxed]
    pub async fn judge_by(
        &self,
        rules: &[&Rule],
        question: &Question,
        versions: Vec<PolicyFacts>,
    ) -> Result<Vec<VersionJudgement>, StoreError> {
        self.judge_all(rules, question, None, versions).await
    }

    /// Judges like [`App::judge`], and adds the facts that the rules use. Does not report the
    /// rulings: the caller must call [`App::report_rulings`].
    #[boxed]
    pub async fn rulings(
        &self,
        set: &RuleSet,
        question: &Question,
        versions: &mut [PolicyFacts],
    ) -> Result<Vec<VersionJudgement>, StoreError> {
        let rules: Vec<&Rule> =
            set.rules.iter().filter(|rule| rule.reaches(question.place.repository)).collect();
        self.rulings_by(&rules, question, None, versions).await
    }

    async fn judge_all(
        &self,
        rules: &[&Rule],
        question: &Question,
        published: Option<&PublishedVersions<'_>>,
        mut versions: Vec<PolicyFacts>,
    ) -> Result<Vec<VersionJudgement>, StoreError> {
        let judged = self.rulings_by(rules, question, published, &mut versions).await?;
        self.report_rulings(question, &versions, &judged);
        Ok(judged)
    }

    async fn rulings_by(
        &self,
        rules: &[&Rule],
        question: &Question,
        published: Option<&PublishedVersions<'_>>,
        versions: &mut [PolicyFacts],
    ) -> Result<Vec<VersionJudgement>, StoreError> {
        let mut judged = vec![VersionJudgement::default(); versions.len()];
        let folding = self.folding_of(&question.place.format);
        let mut targets: Vec<RuleTargets<'_>> = Vec::with_capacity(rules.len());
        for rule in rules {
            let mut places = Vec::new();
            let about = versions.iter().enumerate().filter(|(_, facts)| rule.is_about(folding, &facts.name));
            for (at, facts) in about {
                match rule.excepted_until(question.place.repository, folding, facts, question.now) {
                    None => places.push(at),
                    until => judged.get_mut(at).into_iter().for_each(|judged| judged.note_until(until)),
                }
            }
            if !places.is_empty() {
                targets.push(RuleTargets { rule, places });
            }
        }
        facts::complete(self, question, published, &required_facts(&targets), versions).await?;
        for RuleTargets { rule, places } in targets {
            for batch in batches(&places, versions) {
                let facts: Vec<PolicyFacts> =
                    batch.iter().filter_map(|at| versions.get(*at).cloned()).collect();
                let outcomes = self.ask(rule, question, &facts).await?;
                for (at, outcome) in batch.iter().zip(outcomes) {
                    if let Some(judged) = judged.get_mut(*at) {
                        judged.take(rule, outcome);
                    }
                }
            }
        }
        Ok(judged)
    }

    /// Calls a rule's component once.
    async fn ask(
        &self,
        rule: &Rule,
        question: &Question,
        facts: &[PolicyFacts],
    ) -> Result<Vec<RuleOutcome>, StoreError> {
        let component = match &rule.component {
            Ok(component) => component,
            Err(why) => return Ok(self.failed(rule, why, facts.len())),
        };
        let place = &question.place;
        let names_in_use = if component.description().wants(OptionalFact::Names) {
            self.names_in_use(place.organization, &place.format).await?
        } else {
            Vec::new()
        };
        let context = PolicyContext {
            purpose: question.purpose,
            now: u64::try_from(question.now).unwrap_or_default(),
            format: place.format.clone(),
            repository: place.name.to_string(),
            kind: place.kind.clone(),
            upstream: place.upstream.clone(),
            caller: question.caller.clone(),
            names_in_use,
        };
        let whose = (place.repository, Arc::clone(&place.name));
        let settings = component.folded(&rule.row.text.settings, self.folding_of(&place.format));
        let judged = component.judge(&question.head, whose, &settings, &context, facts).await;
        let is_preview = question.purpose == PolicyPurpose::Preview;
        let ended = EndedCall {
            component,
            settings: &settings,
            context: &context,
            versions: facts,
            judged: judged.as_deref(),
            is_preview,
        };
        self.record_call(rule, &ended);
        Ok(match judged {
            Ok(rulings) => rulings.into_iter().map(RuleOutcome::Ruled).collect(),
            Err(error) => self.failed(rule, &format!("the policy {error}"), facts.len()),
        })
    }

    fn failed(&self, rule: &Rule, why: &str, versions: usize) -> Vec<RuleOutcome> {
        self.policies.note_failure(rule.row.id, why);
        count("unavailable", versions as u64);
        let failed = || {
            RuleOutcome::Failed(
                "The policy failed to judge this version, so it is refused; an operator must check the policy"
                    .to_owned(),
            )
        };
        (0..versions).map(|_| failed()).collect()
    }
}

/// Splits the versions into several calls. Each call has a maximum number of versions and a maximum
/// estimated size.
fn batches(indexes: &[usize], versions: &[PolicyFacts]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let (mut batch, mut weight) = (Vec::new(), 0_usize);
    for at in indexes {
        let own = versions.get(*at).map_or(0, facts::weight);
        if !batch.is_empty() && (batch.len() == MAX_BATCH || weight.saturating_add(own) > MAX_BATCH_BYTES) {
            batches.push(std::mem::take(&mut batch));
            weight = 0;
        }
        batch.push(*at);
        weight = weight.saturating_add(own);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

#[cfg(test)]
mod tests {
    use packhouse_names::Folding;
    use packhouse_store::{NewException, RuleRow, RuleText};

    use super::*;

    #[test]
    fn a_statement_applies_only_to_its_file() {
        let digest = |text: &str| text.parse::<Digest>().unwrap();
        let (own, other) = (format!("sha256:{}", "aa".repeat(32)), format!("sha256:{}", "bb".repeat(32)));
        let file = RequestedFile { path: "a/x".to_owned(), digests: vec![digest(&own)] };
        assert!(file.is_subject("a/x", &digest(&own)) && file.is_subject("", &digest(&own)));
        assert!(!file.is_subject("a/y", &digest(&own)) && !file.is_subject("a/x", &digest(&other)));
        // Digests of different algorithms cannot be compared, so the statement applies.
        assert!(file.is_subject("a/x", &digest(&format!("sha512:{}", "bb".repeat(64)))));
    }

    fn rule(mode: RuleMode) -> Rule {
        rule_with(mode, Vec::new())
    }

    fn rule_with(mode: RuleMode, exceptions: Vec<NewException>) -> Rule {
        let text = RuleText {
            component: "x".to_owned(),
            settings: "{}".to_owned(),
            repositories: None,
            packages: Some(vec!["a*".to_owned()]),
            digest: String::new(),
        };
        let row = RuleRow {
            id: RuleId(1),
            organization: OrganizationId(1),
            name: "ours".to_owned(),
            text,
            mode,
            previewed: true,
            created_by: String::new(),
            created_at: 0,
        };
        Rule::new(row, exceptions, Err("none".to_owned()), None)
    }

    fn hold(until: u64) -> RuleOutcome {
        RuleOutcome::Ruled(Ruling::Hold { sentence: "young".to_owned(), until: Some(until) })
    }

    #[test]
    fn a_denial_counts_more_than_a_hold_and_a_warning_refuses_nothing() {
        let mut judged = VersionJudgement::default();
        judged.take(&rule(RuleMode::Enforced), hold(5));
        judged.take(&rule(RuleMode::Enforced), RuleOutcome::Ruled(Ruling::Deny("bad.".to_owned())));
        judged.take(&rule(RuleMode::Enforced), hold(3));
        let refusal = judged.refusal.unwrap();
        assert_eq!(
            (refusal.message().as_str(), refusal.word(), judged.until),
            ("bad (policy ours)", "denied", Some(3))
        );
        let mut warned = VersionJudgement::default();
        warned.take(&rule(RuleMode::Warn), RuleOutcome::Failed("away".to_owned()));
        assert!(warned.refusal.is_none() && warned.warnings.len() == 1);
    }

    #[test]
    fn a_call_judges_no_more_than_its_memory_can_hold() {
        let small = vec![facts::of_name("a", "1"); 2_500];
        let indexes: Vec<usize> = (0..small.len()).collect();
        let sizes = |batches: Vec<Vec<usize>>| batches.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(batches(&indexes, &small)), [1_000, 1_000, 500]);
        let mut large = facts::of_name("a", "1");
        large.properties = vec![("x".to_owned(), "y".repeat(3 << 20))];
        assert_eq!(sizes(batches(&[0, 1, 2], &vec![large; 3])), [1, 1, 1]);
        assert!(batches(&[], &small).is_empty());
    }

    #[test]
    fn an_exception_applies_to_its_repository_package_version_and_time() {
        let exception = NewException {
            repository: Some(RepositoryId(7)),
            package: "aB_*".to_owned(),
            version: "1.*".to_owned(),
            reason: String::new(),
            until: 100,
            created_by: String::new(),
        };
        let rule = rule_with(RuleMode::Enforced, vec![exception]);
        let until = |repository, name: &str, version: &str, now| {
            let facts = facts::of_name(name, version);
            rule.excepted_until(RepositoryId(repository), Folding::Pep503, &facts, now)
        };
        assert_eq!(until(7, "ab-c", "1.2", 99), Some(100));
        for (repository, name, version, now) in
            [(8, "ab-c", "1.2", 99), (7, "a-c", "1.2", 99), (7, "ab-c", "2", 99), (7, "ab-c", "1.2", 100)]
        {
            assert_eq!(until(repository, name, version, now), None, "{repository} {name} {version} {now}");
        }
        assert!(rule.is_about(Folding::None, "a") && !rule.is_about(Folding::None, "b"));
        assert!(rule.is_about(Folding::Lowercase, "A") && !rule.is_about(Folding::None, "A"));
        assert!(rule.is_about(Folding::None, ""), "a file of an unknown package may belong to this package");
    }
}
