//! Rows of organizations, members, subscribers, repositories, tokens and keys. This module has SQL
//! but no rules: the caller decides what is allowed.
//!
//! Every method that writes takes an optional [`AuditEvent`], which it writes in the same
//! transaction.

mod access_keys;
mod acknowledged;
mod acme;
mod api_tokens;
mod audit;
mod changed_facts;
mod confirmations;
mod event;
mod expiring;
mod external_groups;
mod external_ids;
mod formats;
mod invitations;
mod key_owners;
mod last_owner;
mod leased_look_ups;
mod logins;
mod look_up;
mod member_email;
mod members;
mod meta;
mod older_servers;
mod ordered_lists;
mod organizations;
mod password_resets;
mod repositories;
mod required_factor;
mod rows;
mod service_accounts;
mod sessions;
mod signing_keys;
mod snapshots;
mod sso;
mod suspension;
mod team_members;
mod teams;
pub(crate) mod token_events;
mod tokens;
mod totp;
mod unreadable;
mod upstream_credentials;

pub use access_keys::{KeyRotation, NewAccessKey};
pub(crate) use acknowledged::Acknowledged;
pub use acme::AcmeProof;
pub use api_tokens::{ApiTokenRotation, NewApiToken};
pub use audit::{AuditFilter, AuditRow};
pub(crate) use changed_facts::ChangedFacts;
pub use confirmations::ConfirmationRow;
pub use event::AuditEvent;
pub(crate) use event::{insert as insert_audit, remember};
pub use expiring::{ExpiringApiToken, ExpiringKey, ExpiryRange};
pub use invitations::{Accepted, InvitationRow, NewPassword};
pub use key_owners::{KeyOwnerChange, KeyOwnerKind, KeyOwnerRow, NewKeyOwner};
pub(crate) use leased_look_ups::LeasedLookUps;
pub use logins::{LoginBegun, LoginRow, NewLogin};
#[cfg(test)]
pub(crate) use look_up::{LOOK_UP, reached_sql};
pub use member_email::EmailChange;
pub use members::{MemberChange, NewMember};
pub use organizations::{NewOrganization, OrganizationRow};
pub use password_resets::{PasswordReset, PasswordResetRow};
pub use repositories::NewRepository;
pub use required_factor::PasswordFactor;
pub use rows::access_key::AccessKeyRow;
pub use rows::api_token::ApiTokenRow;
pub use rows::member::{MemberKind, MemberRow};
pub use rows::repository::RepositoryRow;
pub use rows::team::TeamRow;
pub use rows::token::{Scope, TokenRow};
pub use sessions::SessionRow;
pub use signing_keys::SigningKeyRow;
pub(crate) use snapshots::{ExpectedCommit, Revisions, Snapshots};
pub use snapshots::{LookUp, Reached};
pub use sso::{SsoIdentity, SsoMember};
pub use team_members::{MembershipSource, TeamMember};
pub use teams::{NewTeam, TeamChange};
pub use tokens::{NewToken, Rotation};
pub(crate) use tokens::{insert as insert_token, read_token};
pub use totp::TotpRow;
