//! Credentials: the form and storage of tokens, the check of passwords, and the comparison of
//! e-mail addresses. Only `access` decides who may do what.

pub mod access;
mod bearer;
pub mod grants;
mod password;
pub mod permissions;
mod seal;
mod secret;
mod sign_ins;
mod throttle;
mod totp;
mod webhook_secret;

// Boxes the future, so that its body is compiled here and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use bearer::{Bearer, BearerError, BearerHolder, Bearers, LIFETIME_S, ScopeGrant, says_bearer};
pub use packhouse_config::{
    Secret, TOKEN_PREFIX, email, email_domain, new_password, says_api_token, says_token,
};
pub use password::Passwords;
pub use seal::{SealError, Sealer};
pub use secret::{
    Minted, SECRET_PREFIXES, fingerprint, holds_secret, holds_token, mint, mint_api_token, mint_poll,
    random_password,
};
pub use sign_ins::{Attempt, CodeOutcome, Factors, SignInOutcome, SignIns};
pub use throttle::SignInSource;
pub use totp::{EnteredCode, RecoveryCode, TotpSecret, mint_recovery_codes};
pub use webhook_secret::{mint_webhook_secret, sign_webhook};
