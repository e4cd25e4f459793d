//! Organizations, their members, repositories and tokens as rows: SQL and no rules. What may be done is judged by the caller.
//!
//! Every verb that writes takes an optional [`AuditEvent`], which is written in the same transaction.

mod audit;
mod confirmations;
mod look_up;
mod members;
mod organizations;
mod repositories;
mod sessions;
mod token_use;
mod tokens;

pub use audit::{AuditEvent, AuditRow};
pub use confirmations::ConfirmationRow;
pub use look_up::LookUp;
pub(crate) use look_up::Snapshots;
#[cfg(test)]
pub(crate) use look_up::look_up_sql;
pub use members::{MemberRow, NewMember};
pub use organizations::{NewOrganization, OrganizationRow};
pub use repositories::{NewRepository, RepositoryRow};
pub use sessions::SessionRow;
pub(crate) use token_use::TokenUse;
pub use tokens::{NewToken, Rotation, Scope, TokenRow};
