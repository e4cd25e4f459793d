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
mod tokens;

pub use audit::{AuditEvent, AuditRow};
pub use confirmations::ConfirmationRow;
pub use look_up::LookUp;
pub(crate) use look_up::Snapshots;
pub use members::{MemberRow, NewMember};
pub use organizations::{NewOrganization, OrganizationRow};
pub use repositories::{NewRepository, RepositoryRow};
pub use sessions::SessionRow;
pub use tokens::{NewToken, Rotation, Scope, TokenRow};
