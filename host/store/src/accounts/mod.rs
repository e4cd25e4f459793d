//! Organizations, their members, subscribers, repositories, tokens and keys as rows: SQL and no rules. What may be done is judged by the caller.
//!
//! Every verb that writes takes an optional [`AuditEvent`], which is written in the same transaction.

mod access_keys;
mod audit;
mod confirmations;
mod formats;
mod invitations;
mod key_owners;
mod logins;
mod look_up;
mod members;
mod meta;
mod organizations;
mod password_resets;
mod refusals;
mod repositories;
mod sessions;
mod signing_keys;
mod sso;
mod token_use;
mod tokens;
mod unreadable;
mod upstream_credentials;

pub use access_keys::{AccessKeyRow, KeyRotation, NewAccessKey};
pub(crate) use audit::insert as insert_audit;
pub use audit::{AuditEvent, AuditFilter, AuditRow};
pub use confirmations::ConfirmationRow;
pub use invitations::{Accepted, InvitationRow, NewPassword};
pub use key_owners::{KeyOwnerChange, KeyOwnerKind, KeyOwnerRow, NewKeyOwner};
pub use logins::{LoginBegun, LoginRow, NewLogin};
pub(crate) use look_up::Snapshots;
#[cfg(test)]
pub(crate) use look_up::{LOOK_UP, reached_sql};
pub use look_up::{LookUp, Reached};
pub use members::{MemberChange, MemberRow, NewMember};
pub use organizations::{NewOrganization, OrganizationRow};
pub use password_resets::{PasswordReset, PasswordResetRow};
pub use refusals::Refusal;
pub(crate) use refusals::RefusalsOfMinute;
pub use repositories::{NewRepository, RepositoryRow};
pub use sessions::SessionRow;
pub use signing_keys::SigningKeyRow;
pub use sso::{SsoIdentity, SsoMember};
pub(crate) use token_use::UsedCredential;
pub use tokens::{NewToken, Rotation, Scope, TokenRow};
