//! What the rules that hold say of one version that is there, as a preview of each would.

use packhouse_app::policies::facts;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{RepositoryRow, RuleId, now_ms};

use super::preview::question;
use crate::error::ApiError;
use crate::operations::Actor;

/// What a rule says of a version that it does not let pass, or of which it warns.
#[derive(Clone, Debug)]
pub struct RuledVersion {
    /// The rule.
    pub rule: RuleId,
    /// What people call it.
    pub name: String,
    /// `denied`, `held`, `warned` or `policy_unavailable`.
    pub ruling: &'static str,
    /// Why.
    pub because: String,
    /// From when on it may be judged otherwise, in ms since 1970.
    pub until: Option<i64>,
}

/// What does not let this version pass now, and what warns of it; nothing for who does not manage repositories, since rules are not theirs
/// to know.
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
        if let Some((ruling, because)) = refusal.or(warning) {
            let (rule, name) = (rule.row.id, rule.row.name.clone());
            ruled.push(RuledVersion { rule, name, ruling, because, until: judged.until });
        }
    }
    Ok(ruled)
}
