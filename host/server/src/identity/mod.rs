//! Secrets and who presents them: how tokens look and are kept, how passwords are checked, how e-mail addresses are compared. Rules
//! of access are not here.

mod bearer;
mod email;
mod password;
mod seal;
mod secret;
mod sign_ins;
mod throttle;

pub(crate) use bearer::{Bearer, BearerError, Bearers, Grant, Holder, LIFETIME_S, says_bearer};
pub(crate) use email::{email, email_domain};
pub(crate) use password::{Passwords, new_password};
pub(crate) use seal::{SHORTEST as SHORTEST_KEY, SealError, Sealer};
pub(crate) use secret::{
    Minted, Secret, TOKEN_PREFIX, fingerprint, holds_secret, holds_token, mint, mint_poll, random_password,
    says_token,
};
pub(crate) use sign_ins::{Attempt, Outcome, SignIns};
pub(crate) use throttle::Who;
