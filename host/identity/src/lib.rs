//! Secrets and who presents them: how tokens look and are kept, how passwords are checked, how e-mail addresses are compared. Who may do what
//! is decided in `access` alone.

pub mod access;
mod bearer;
pub mod grants;
mod password;
pub mod permissions;
mod seal;
mod secret;
mod sign_ins;
mod throttle;
mod webhook_secret;

// Compiles the body of an `async fn` here, and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use bearer::{Bearer, BearerError, Bearers, Holder, LIFETIME_S, ScopeGrant, says_bearer};
pub use packhouse_config::{Secret, TOKEN_PREFIX, email, email_domain, new_password, says_token};
pub use password::Passwords;
pub use seal::{SealError, Sealer};
pub use secret::{
    Minted, SECRET_PREFIXES, fingerprint, holds_secret, holds_token, mint, mint_poll, random_password,
};
pub use sign_ins::{Attempt, Outcome, SignIns};
pub use throttle::Who;
pub use webhook_secret::{mint_webhook_secret, sign_webhook};
