//! Rules judge versions: each that is about them, the strictest ruling counts, and an exception lets pass what a rule does not.

use std::sync::Arc;

use packhouse_runtime::{
    IgnoredFact, MAX_BATCH, PolicyContext, PolicyFacts, PolicyPurpose, RequestHead, Ruling, WantedFact,
};
use packhouse_store::{
    Digest, OrganizationId, RepositoryId, RuleId, RuleMode, SignedStatement, StoreError, Version,
};

use super::facts::Wanted;
use super::recorded::EndedCall;
use super::report::count;
use super::{Rule, RuleSet, facts};
use crate::App;
use crate::boxed;

/// Bytes of facts of one call at most, about.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// Which repository versions are in.
#[derive(Clone, Debug)]
pub struct JudgedWhere {
    /// Whose it is.
    pub organization: OrganizationId,
    /// Its identifier.
    pub repository: RepositoryId,
    /// Its name.
    pub name: Arc<str>,
    /// `hosted` or `proxy`.
    pub kind: String,
    /// Its format.
    pub format: String,
    /// A proxy's upstream address.
    pub upstream: Option<String>,
}

/// A file that is asked for: what is signed of another, or of what it was once, says nothing of it.
#[derive(Clone, Debug)]
pub struct AskedFile {
    /// Its path.
    pub path: String,
    /// What it must turn out to be, as far as that is known.
    pub digests: Vec<Digest>,
}

impl AskedFile {
    /// Whether what is stated of the file at this path, with this digest, is stated of this one.
    pub(super) fn is_subject(&self, path: &str, digest: &Digest) -> bool {
        let mut known = self.digests.iter().filter(|known| known.algorithm == digest.algorithm);
        (path.is_empty() || path == self.path) && known.all(|known| known == digest)
    }
}

/// What is asked of rules.
#[derive(Clone, Debug)]
pub struct Question {
    /// Where.
    pub place: JudgedWhere,
    /// What for.
    pub purpose: PolicyPurpose,
    /// The file of the version that is asked for, where it is one.
    pub file: Option<AskedFile>,
    /// Who asks, as it may be shown.
    pub caller: Option<String>,
    /// The request that it is part of, for logs.
    pub head: Arc<RequestHead>,
    /// Now, in ms since 1970.
    pub now: i64,
}

/// What rules say of a version.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Why it does not pass; none: it passes.
    pub refusal: Option<Refusal>,
    /// What is told although it passes: the names of rules, each with a sentence.
    pub warnings: Vec<(String, String)>,
    /// From when on it may be judged otherwise, in ms since 1970, although nothing is changed.
    pub until: Option<i64>,
}

/// Why a version does not pass.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// By which rule.
    pub rule: RuleId,
    /// Its name.
    pub rule_name: String,
    /// Whether it only does not pass yet.
    pub held: bool,
    /// Whether the rule could not judge it.
    pub unavailable: bool,
    /// Why, for whoever is refused.
    pub sentence: String,
}

impl Refusal {
    /// The sentence with the rule that it comes from.
    #[must_use]
    pub fn told(&self) -> String {
        format!("{} (policy {})", self.sentence.trim_end_matches('.'), self.rule_name)
    }

    /// In one word, for logs and events.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (self.unavailable, self.held) {
            (true, _) => "policy_unavailable",
            (false, true) => "held",
            (false, false) => "denied",
        }
    }
}

impl Judged {
    fn note_until(&mut self, at: Option<i64>) {
        self.until = self.until.into_iter().chain(at).min();
    }

    fn take(&mut self, rule: &Rule, ruling: Outcome) {
        let name = || rule.row.name.clone();
        let (sentence, held, unavailable) = match ruling {
            Outcome::Ruled(Ruling::Allow) => return,
            Outcome::Ruled(Ruling::Warn(sentence)) => return self.warnings.push((name(), sentence)),
            Outcome::Ruled(Ruling::Hold { sentence, until }) => {
                self.note_until(until.map(|at| i64::try_from(at).unwrap_or(i64::MAX)));
                (sentence, true, false)
            }
            Outcome::Ruled(Ruling::Deny(sentence)) => (sentence, false, false),
            Outcome::Failed(sentence) => (sentence, false, true),
        };
        if rule.row.mode == RuleMode::Warn {
            return self.warnings.push((name(), sentence));
        }
        let refusal = Refusal { rule: rule.row.id, rule_name: name(), held, unavailable, sentence };
        // A denial is said before what only has to wait.
        let is_stricter = self.refusal.as_ref().is_none_or(|before| before.held && !held);
        if is_stricter {
            self.refusal = Some(refusal);
        }
    }
}

/// What is about to be published.
pub struct Published<'a> {
    /// The versions that are to be shown.
    pub versions: &'a [&'a Version],
    /// What comes with them.
    pub statements: &'a [&'a SignedStatement],
}

/// A rule, and where among the versions those stand that it is asked about.
struct Asked<'a> {
    rule: &'a Rule,
    places: Vec<usize>,
}

/// What the rules that are asked look at.
fn wanted(asked: &[Asked<'_>]) -> Wanted {
    let mut wanted = Wanted::default();
    for Asked { rule, places } in asked {
        // What is not there denies whatever is known.
        let Ok(component) = &rule.component else { continue };
        if !component.description().ignores(IgnoredFact::Provenance) {
            wanted.provenance.extend(places);
        }
        if !component.description().ignores(IgnoredFact::Advisories) {
            wanted.advisories.extend(places);
        }
    }
    wanted
}

/// What became of asking a rule about a version.
enum Outcome {
    Ruled(Ruling),
    Failed(String),
}

impl App {
    /// What the rules of this set say of these versions: one for each, in their order. What a rule cannot judge does not pass.
    #[boxed]
    pub async fn judge(
        &self,
        set: &RuleSet,
        question: &Question,
        versions: Vec<PolicyFacts>,
    ) -> Result<Vec<Judged>, StoreError> {
        let rules: Vec<&Rule> =
            set.rules.iter().filter(|rule| rule.reaches(question.place.repository)).collect();
        self.judge_by(&rules, question, versions).await
    }

    /// The same of versions that are published, with the statements that come with them.
    #[boxed]
    pub async fn judge_publish(
        &self,
        set: &RuleSet,
        question: &Question,
        published: &Published<'_>,
    ) -> Result<Vec<Judged>, StoreError> {
        let rules: Vec<&Rule> =
            set.rules.iter().filter(|rule| rule.reaches(question.place.repository)).collect();
        let now = u64::try_from(question.now).unwrap_or_default();
        let of_version = |version: &&Version| facts::of_version(version, version.published.or(Some(now)));
        let versions = published.versions.iter().map(of_version).collect();
        self.judge_all(&rules, question, Some(published), versions).await
    }

    /// The same by these rules, wherever they hold.
    #[boxed]
    pub async fn judge_by(
        &self,
        rules: &[&Rule],
        question: &Question,
        versions: Vec<PolicyFacts>,
    ) -> Result<Vec<Judged>, StoreError> {
        self.judge_all(rules, question, None, versions).await
    }

    /// As [`App::judge`], without a report, which is the caller's to make ([`App::report_rulings`]). Adds to the facts what the rules
    /// look at.
    #[boxed]
    pub async fn rulings(
        &self,
        set: &RuleSet,
        question: &Question,
        versions: &mut [PolicyFacts],
    ) -> Result<Vec<Judged>, StoreError> {
        let rules: Vec<&Rule> =
            set.rules.iter().filter(|rule| rule.reaches(question.place.repository)).collect();
        self.rulings_by(&rules, question, None, versions).await
    }

    async fn judge_all(
        &self,
        rules: &[&Rule],
        question: &Question,
        published: Option<&Published<'_>>,
        mut versions: Vec<PolicyFacts>,
    ) -> Result<Vec<Judged>, StoreError> {
        let judged = self.rulings_by(rules, question, published, &mut versions).await?;
        self.report_rulings(question, &versions, &judged);
        Ok(judged)
    }

    async fn rulings_by(
        &self,
        rules: &[&Rule],
        question: &Question,
        published: Option<&Published<'_>>,
        versions: &mut [PolicyFacts],
    ) -> Result<Vec<Judged>, StoreError> {
        let mut judged = vec![Judged::default(); versions.len()];
        let folding = self.folding_of(&question.place.format);
        let mut asked: Vec<Asked<'_>> = Vec::with_capacity(rules.len());
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
                asked.push(Asked { rule, places });
            }
        }
        facts::complete(self, question, published, &wanted(&asked), versions).await?;
        for Asked { rule, places } in asked {
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

    /// One call of a rule's component.
    async fn ask(
        &self,
        rule: &Rule,
        question: &Question,
        facts: &[PolicyFacts],
    ) -> Result<Vec<Outcome>, StoreError> {
        let component = match &rule.component {
            Ok(component) => component,
            Err(why) => return Ok(self.failed(rule, why, facts.len())),
        };
        let place = &question.place;
        let names_in_use = if component.description().wants(WantedFact::Names) {
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
            Ok(rulings) => rulings.into_iter().map(Outcome::Ruled).collect(),
            Err(error) => self.failed(rule, &format!("it {error}"), facts.len()),
        })
    }

    fn failed(&self, rule: &Rule, why: &str, versions: usize) -> Vec<Outcome> {
        self.policies.note_failure(rule.row.id, why);
        count("unavailable", versions as u64);
        let failed = || {
            Outcome::Failed(
                "This could not be judged, and so does not pass: an operator has to look at the policy"
                    .to_owned(),
            )
        };
        (0..versions).map(|_| failed()).collect()
    }
}

/// What is asked in one call each: no more versions than one may be asked about, and no more bytes than its memory holds with ease.
fn batches(asked: &[usize], versions: &[PolicyFacts]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let (mut batch, mut weight) = (Vec::new(), 0_usize);
    for at in asked {
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
    fn a_statement_counts_for_the_file_that_it_is_about() {
        let digest = |text: &str| text.parse::<Digest>().unwrap();
        let (own, other) = (format!("sha256:{}", "aa".repeat(32)), format!("sha256:{}", "bb".repeat(32)));
        let asked = AskedFile { path: "a/x".to_owned(), digests: vec![digest(&own)] };
        assert!(asked.is_subject("a/x", &digest(&own)) && asked.is_subject("", &digest(&own)));
        assert!(!asked.is_subject("a/y", &digest(&own)) && !asked.is_subject("a/x", &digest(&other)));
        // What is known by another algorithm tells nothing.
        assert!(asked.is_subject("a/x", &digest(&format!("sha512:{}", "bb".repeat(64)))));
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

    fn hold(until: u64) -> Outcome {
        Outcome::Ruled(Ruling::Hold { sentence: "young".to_owned(), until: Some(until) })
    }

    #[test]
    fn a_denial_counts_more_than_a_hold_and_a_warning_refuses_nothing() {
        let mut judged = Judged::default();
        judged.take(&rule(RuleMode::Enforced), hold(5));
        judged.take(&rule(RuleMode::Enforced), Outcome::Ruled(Ruling::Deny("bad.".to_owned())));
        judged.take(&rule(RuleMode::Enforced), hold(3));
        let refusal = judged.refusal.unwrap();
        assert_eq!(
            (refusal.told().as_str(), refusal.word(), judged.until),
            ("bad (policy ours)", "denied", Some(3))
        );
        let mut warned = Judged::default();
        warned.take(&rule(RuleMode::Warn), Outcome::Failed("away".to_owned()));
        assert!(warned.refusal.is_none() && warned.warnings.len() == 1);
    }

    #[test]
    fn a_call_is_asked_about_no_more_than_it_can_hold() {
        let small = vec![facts::of_name("a", "1"); 2_500];
        let asked: Vec<usize> = (0..small.len()).collect();
        let sizes = |batches: Vec<Vec<usize>>| batches.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(batches(&asked, &small)), [1_000, 1_000, 500]);
        let mut large = facts::of_name("a", "1");
        large.properties = vec![("x".to_owned(), "y".repeat(3 << 20))];
        assert_eq!(sizes(batches(&[0, 1, 2], &vec![large; 3])), [1, 1, 1]);
        assert!(batches(&[], &small).is_empty());
    }

    #[test]
    fn an_exception_is_of_a_place_a_package_a_version_and_a_time() {
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
        assert!(rule.is_about(Folding::None, ""), "a file of no known package may be of this one");
    }
}
