//! Sign-ins and tokens of the caller.

use super::error::{ServiceFuture, not_available};
use crate::view::RepositoryView;

/// The server's side of the interface `identity`, for one caller. Every default is that the service is not available.
pub trait IdentityService: Send + Sync + 'static {
    /// Begins a sign-in for a token of this repository.
    fn begin_login<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Login> {
        not_available("sign-in")
    }

    /// Where the sign-in stands.
    fn finish_login<'a>(&'a self, _id: &'a str) -> ServiceFuture<'a, LoginState> {
        not_available("sign-in")
    }

    /// The caller's own tokens, newest first.
    fn tokens(&self) -> ServiceFuture<'_, Vec<TokenView>> {
        not_available("tokens")
    }

    /// Revokes the caller's token; false where there is none of that id.
    fn revoke<'a>(&'a self, _id: &'a str) -> ServiceFuture<'a, bool> {
        not_available("tokens")
    }
}

/// A sign-in that has begun.
#[derive(Clone, Debug)]
pub struct Login {
    /// What the client asks for afterwards.
    pub id: String,
    /// The page at which a person signs in.
    pub url: String,
}

/// Where a sign-in stands.
#[derive(Clone, Debug)]
pub enum LoginState {
    /// Ask again after so many seconds.
    Waiting(u32),
    /// A placeholder that the server replaces by the token in this call's answer.
    Granted(String),
    /// Unknown, too old, or fetched already.
    Gone,
}

/// A token as its owner may see it.
#[derive(Clone, Debug)]
pub struct TokenView {
    /// Not secret.
    pub id: String,
    /// Its owner's name for it.
    pub name: String,
    /// As much of it as may be shown.
    pub hint: String,
    /// `read`, `write`.
    pub scope: Vec<String>,
    /// In ms since 1970.
    pub created: u64,
    /// In ms since 1970.
    pub expires: Option<u64>,
}
