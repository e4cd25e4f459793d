//! The rules of an organization, ready to judge.

use std::sync::Arc;

use packhouse_names::{Folding, NamePatterns, glob_match};
use packhouse_runtime::{IgnoredFact, PolicyComponent, PolicyFacts};
use packhouse_store::{NewException, RepositoryId, RuleRow};

use super::recorded::Armed;

/// The active rules of an organization.
pub struct RuleSet {
    /// Revision number of the rules, from the look-up.
    pub number: i64,
    pub(super) rules: Vec<Rule>,
}

/// A rule with its exceptions and its component.
pub struct Rule {
    pub row: RuleRow,
    /// Patterns of the packages to which the rule applies; `None` means all packages.
    packages: Option<NamePatterns>,
    exceptions: Vec<Exception>,
    /// Component of the rule, or the reason why it is not available.
    pub component: Result<Arc<PolicyComponent>, String>,
    /// Recording set for calls of this rule; `None` if recording is off.
    pub(super) armed: Option<Armed>,
}

/// An exception to a rule.
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
    /// Reports whether any rule applies to this repository.
    #[must_use]
    pub fn reaches(&self, repository: RepositoryId) -> bool {
        self.rules.iter().any(|rule| rule.reaches(repository))
    }

    /// Reports whether any rule for this repository uses provenance.
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

    /// Reports whether the rule applies to this repository.
    #[must_use]
    pub fn reaches(&self, repository: RepositoryId) -> bool {
        self.row.text.repositories.as_ref().is_none_or(|only| only.contains(&repository))
    }

    /// Reports whether the rule applies to this package. `folding` is how the package's format
    /// normalises names. An empty name stands for a file whose package is not known. It may belong
    /// to any package, so every rule applies to it.
    #[must_use]
    pub fn is_about(&self, folding: Folding, package: &str) -> bool {
        package.is_empty() || self.packages.as_ref().is_none_or(|only| only.cover(folding, package))
    }

    /// Returns the time until which an exception exempts this version, in ms since 1970. Returns
    /// `None` if no exception applies.
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
