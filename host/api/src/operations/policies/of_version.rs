//! Rulings of the active rules about one existing version, as their previews would show them.

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
    if !actor.permissions().holds(ManageRepositories) {
        return Ok(Vec::new());
    }
    let app = &actor.app;
    let (rows, exceptions) = app.store.rules_that_hold(repository.organization).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let Some(known) = app.store.facts_of_version(repository.id, package, version).await? else {
        return Ok(Vec::new());
    };
    let question = question(repository, now_ms());
    let mut ruled = Vec::new();
    for row in rows {
        let own = exceptions.iter().filter(|one| one.rule == row.id).map(|one| one.new.clone()).collect();
        let rule = app.rule_as_it_is(row, own).await?;
        if !rule.reaches(repository.id) {
            continue;
        }
        let judged = app.judge_by(&[&rule], &question, vec![facts::of_row(&known)]).await?;
        let Some(judged) = judged.into_iter().next() else { continue };
        let warning = judged.warnings.first().map(|(_, sentence)| ("warned", sentence.clone()));
        let refusal = judged.refusal.map(|refusal| (refusal.word(), refusal.sentence));
        if let Some((ruling, reason)) = refusal.or(warning) {
            let (rule, name) = (rule.row.id, rule.row.name.clone());
            ruled.push(RuledVersion { rule, name, ruling, reason, until: judged.until });
        }
    }
    Ok(ruled)
}
