//! The rules of an organization, ready to judge.

use std::sync::Arc;

use packhouse_names::glob_match;
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
    pub(super) exceptions: Vec<NewException>,
    /// Its component, or why there is none.
    pub component: Result<Arc<PolicyComponent>, String>,
    /// Where recordings of its calls go; none: nobody wants them.
    pub(super) armed: Option<Armed>,
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
    /// Whether it is about this repository.
    #[must_use]
    pub fn reaches(&self, repository: RepositoryId) -> bool {
        self.row.text.repositories.as_ref().is_none_or(|only| only.contains(&repository))
    }

    /// Whether it is about this package.
    #[must_use]
    pub fn is_about(&self, package: &str) -> bool {
        self.row.text.packages.as_ref().is_none_or(|only| only.iter().any(|one| glob_match(one, package)))
    }

    /// Until when an exception lets this version pass, in ms since 1970; none where none does.
    pub(super) fn excepted_until(
        &self,
        repository: RepositoryId,
        facts: &PolicyFacts,
        now: i64,
    ) -> Option<i64> {
        let fits = |one: &&NewException| {
            one.until > now
                && one.repository.is_none_or(|only| only == repository)
                && glob_match(&one.package, &facts.name)
                && glob_match(&one.version, &facts.version)
        };
        self.exceptions.iter().filter(fits).map(|one| one.until).max()
    }
}
