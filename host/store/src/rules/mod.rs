//! Rules over versions, what passes them nevertheless, and the components that judge. What a rule means is not the store's to know.
//!
//! Each change of what holds gives the organization another number, which every look-up of a request reads: so whoever keeps rules in
//! memory knows whether they are the present ones, on every server, and where the number is null there is nothing to ask.

mod components;
mod exceptions;
mod judged;
mod recorded;
mod rows;

pub use components::{MAX_POLICY_COMPONENTS, NewPolicyComponent, PolicyComponentRow};
pub use exceptions::{ExceptionRow, MAX_EXCEPTIONS, NewException};
pub use judged::{FactsPlace, VersionFactsRow};
pub use recorded::RuleRecording;
pub use rows::{MAX_RULES, NewRule, RuleChange, RuleMode, RuleRow, RuleText};

use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, new_id};

/// Gives the organization's rules another number.
async fn renumber(transaction: &mut Transaction, organization: OrganizationId) -> Result<(), StoreError> {
    let sql = "UPDATE organizations SET policies = CASE WHEN EXISTS \
               (SELECT 1 FROM policy_rules WHERE organization = $1 AND mode <> 'paused') THEN CAST($2 AS BIGINT) END WHERE id = $1";
    transaction.execute(sql, values![organization.0, new_id()]).await?;
    Ok(())
}

fn ids_written(ids: &[RepositoryId]) -> Result<String, StoreError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    serde_json::to_string(&ids)
        .map_err(|error| StoreError::Invalid(format!("a rule's repositories: {error}")))
}
