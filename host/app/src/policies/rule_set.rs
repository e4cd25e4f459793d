//! The rules of an organization, ready to judge.

use std::sync::Arc;

use packhouse_names::{Folding, NamePatterns, glob_match};
use packhouse_runtime::{IgnoredFact, PolicyComponent, PolicyFacts};
use packhouse_store::{NewException, RepositoryId, RuleRow};

use super::recorded::Armed;

/// The rules that hold in an organization.
pub struct RuleSet {
    /// What the look-up said of them.
    pub number: i64,
    pub(super) rules: Vec<Rule>,
}

/// A rule with what passes it and what judges.
pub struct Rule {
    /// What it says.
    pub row: RuleRow,
    /// Patterns of the packages that it is about; none: all.
    packages: Option<NamePatterns>,
    exceptions: Vec<Exception>,
    /// Its component, or why there is none.
    pub component: Result<Arc<PolicyComponent>, String>,
    /// Where recordings of its calls go; none: nobody wants them.
    pub(super) armed: Option<Armed>,
}

/// What passes a rule.
struct Exception {
    repository: Option<RepositoryId>,
    package: NamePatterns,
    version: String,
    until: i64,
}

impl From<NewException> for Exception {
    fn from(new: NewException) -> Exception {
        let NewException { repository, package, version, until, .. } = new;
        Exception { repository, package: vec![package].into(), version, until }
    }
}

impl RuleSet {
    /// Whether a rule is about this repository.
    #[must_use]
    pub fn reaches(&self, repository: RepositoryId) -> bool {
        self.rules.iter().any(|rule| rule.reaches(repository))
    }

    /// Whether a rule that is about this repository looks at what is signed of versions.
    #[must_use]
    pub fn looks_at_provenance(&self, repository: RepositoryId) -> bool {
        let looks = |rule: &Rule| {
            rule.component
                .as_ref()
                .is_ok_and(|component| !component.description().ignores(IgnoredFact::Provenance))
        };
        self.rules.iter().any(|rule| rule.reaches(repository) && looks(rule))
    }
}

impl Rule {
    pub(super) fn new(
        row: RuleRow,
        exceptions: impl IntoIterator<Item = NewException>,
        component: Result<Arc<PolicyComponent>, String>,
        armed: Option<Armed>,
    ) -> Rule {
        let packages = row.text.packages.clone().map(NamePatterns::from);
        let exceptions = exceptions.into_iter().map(Exception::from).collect();
        Rule { row, packages, exceptions, component, armed }
    }

    /// Whether it is about this repository.
    #[must_use]
    pub fn reaches(&self, repository: RepositoryId) -> bool {
        self.row.text.repositories.as_ref().is_none_or(|only| only.contains(&repository))
    }

    /// Whether it is about this package of a format that folds names so. An empty name stands for a file whose package is not known: it
    /// may belong to any package, so every rule is about it.
    #[must_use]
    pub fn is_about(&self, folding: Folding, package: &str) -> bool {
        package.is_empty() || self.packages.as_ref().is_none_or(|only| only.cover(folding, package))
    }

    /// Until when an exception lets this version pass, in ms since 1970; none where none does.
    pub(super) fn excepted_until(
        &self,
        repository: RepositoryId,
        folding: Folding,
        facts: &PolicyFacts,
        now: i64,
    ) -> Option<i64> {
        let fits = |one: &&Exception| {
            one.until > now
                && one.repository.is_none_or(|only| only == repository)
                && one.package.cover(folding, &facts.name)
                && glob_match(&one.version, &facts.version)
        };
        self.exceptions.iter().filter(fits).map(|one| one.until).max()
    }
}
