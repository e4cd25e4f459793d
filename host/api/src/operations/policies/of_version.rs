//! Rulings of the active rules about existing versions of a package, as their previews would show
//! them.

use std::collections::HashMap;

use packhouse_app::policies::facts;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{RepositoryRow, RuleId, now_ms};

use super::preview::question;
use crate::error::ApiError;
use crate::operations::Actor;

/// Ruling of a rule about a version that it refuses or warns about.
#[derive(Clone, Debug)]
pub struct RuledVersion {
    pub rule: RuleId,
    /// Displayed name of the rule.
    pub name: String,
    /// `denied`, `held`, `warned` or `policy_unavailable`.
    pub ruling: &'static str,
    /// Reason, as a text for people.
    pub reason: String,
    /// Time in ms since 1970 from which the ruling may change.
    pub until: Option<i64>,
}

/// Returns the rules that now refuse this version or warn about it. Empty for an actor without
/// manage-repositories, who may not see the rules.
pub async fn of_version(
    actor: &Actor,
    repository: &RepositoryRow,
    package: &str,
    version: &str,
) -> Result<Vec<RuledVersion>, ApiError> {
    let ruled = of_versions(actor, repository, package, &[version.to_owned()]).await?;
    Ok(ruled.into_iter().next().unwrap_or_default())
}

/// Returns the same as [`of_version`] for each of these versions, in their order. The number of
/// store calls does not depend on the number of versions, at most 1,000.
pub async fn of_versions(
    actor: &Actor,
    repository: &RepositoryRow,
    package: &str,
    versions: &[String],
) -> Result<Vec<Vec<RuledVersion>>, ApiError> {
    let nothing = || vec![Vec::new(); versions.len()];
    if versions.is_empty() || !actor.permissions().holds(ManageRepositories) {
        return Ok(nothing());
    }
    let app = &actor.app;
    let (rows, exceptions) = app.store.rules_that_hold(repository.organization).await?;
    if rows.is_empty() {
        return Ok(nothing());
    }
    let known = app.store.facts_of_versions(repository.id, package, versions).await?;
    if known.is_empty() {
        return Ok(nothing());
    }
    let question = question(repository, now_ms());
    let mut ruled: HashMap<&str, Vec<RuledVersion>> = HashMap::new();
    for row in rows {
        let own = exceptions.iter().filter(|one| one.rule == row.id).map(|one| one.new.clone()).collect();
        let rule = app.rule_as_it_is(row, own).await?;
        if !rule.reaches(repository.id) {
            continue;
        }
        let judged = app.judge_by(&[&rule], &question, known.iter().map(facts::of_row).collect()).await?;
        for (version, judged) in known.iter().zip(judged) {
            let warning = judged.warnings.first().map(|(_, sentence)| ("warned", sentence.clone()));
            let refusal = judged.refusal.map(|refusal| (refusal.word(), refusal.sentence));
            if let Some((ruling, reason)) = refusal.or(warning) {
                let (rule, name) = (rule.row.id, rule.row.name.clone());
                let one = RuledVersion { rule, name, ruling, reason, until: judged.until };
                ruled.entry(version.version.version.as_str()).or_default().push(one);
            }
        }
    }
    Ok(versions.iter().map(|version| ruled.remove(version.as_str()).unwrap_or_default()).collect())
}
