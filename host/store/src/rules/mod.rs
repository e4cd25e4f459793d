//! Rules about versions, their exceptions, and the components that evaluate them. The caller
//! interprets the rules.
//!
//! Each change of the active rules gives the organization a new number. Every look-up of a request
//! reads this number. So each server knows whether the rules in its memory are current. If the
//! number is null, the organization has no active rules.

mod components;
mod exceptions;
mod recorded;
mod rows;
pub(crate) mod version_facts;

pub use components::{MAX_POLICY_COMPONENTS, NewPolicyComponent, PolicyComponentRow};
pub use exceptions::{ExceptionRow, MAX_EXCEPTIONS, NewException};
pub use recorded::RuleRecording;
pub use rows::{MAX_RULES, NewRule, RuleChange, RuleMode, RuleRow, RuleText};
pub use version_facts::{FactsPlace, VersionFactsRow};

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
