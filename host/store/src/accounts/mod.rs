//! Rows of organizations, members, subscribers, repositories, tokens and keys. This module has SQL
//! but no rules: the caller decides what is allowed.
//!
//! Every method that writes takes an optional [`AuditEvent`], which it writes in the same
//! transaction.

mod access_keys;
mod acknowledged;
mod acme;
mod audit;
mod changed_facts;
mod confirmations;
mod event;
mod formats;
mod invitations;
mod key_owners;
mod leased_look_ups;
mod logins;
mod look_up;
mod members;
mod meta;
mod organizations;
mod password_resets;
mod repositories;
mod rows;
mod sessions;
mod signing_keys;
mod snapshots;
mod sso;
pub(crate) mod token_events;
mod tokens;
mod unreadable;
mod upstream_credentials;

pub use access_keys::{KeyRotation, NewAccessKey};
pub(crate) use acknowledged::Acknowledged;
pub use acme::AcmeProof;
pub use audit::{AuditFilter, AuditRow};
pub(crate) use changed_facts::ChangedFacts;
pub use confirmations::ConfirmationRow;
pub use event::AuditEvent;
pub(crate) use event::{insert as insert_audit, remember};
pub use invitations::{Accepted, InvitationRow, NewPassword};
pub use key_owners::{KeyOwnerChange, KeyOwnerKind, KeyOwnerRow, NewKeyOwner};
pub(crate) use leased_look_ups::LeasedLookUps;
pub use logins::{LoginBegun, LoginRow, NewLogin};
#[cfg(test)]
pub(crate) use look_up::{LOOK_UP, reached_sql};
pub use members::{MemberChange, NewMember};
pub use organizations::{NewOrganization, OrganizationRow};
pub use password_resets::{PasswordReset, PasswordResetRow};
pub use repositories::NewRepository;
pub use rows::access_key::AccessKeyRow;
pub use rows::member::MemberRow;
pub use rows::repository::RepositoryRow;
pub use rows::token::{Scope, TokenRow};
pub use sessions::SessionRow;
pub use signing_keys::SigningKeyRow;
pub(crate) use snapshots::{ExpectedCommit, Revisions, Snapshots};
pub use snapshots::{LookUp, Reached};
pub use sso::{SsoIdentity, SsoMember};
pub use tokens::{NewToken, Rotation};
pub(crate) use tokens::{insert as insert_token, read_token};
