use super::error::{ServiceFuture, not_available};
use crate::view::RepositoryView;

/// Server side of the interface `identity`, for one caller. By default the service is not
/// available.
pub trait IdentityService: Send + Sync + 'static {
    /// Begins a sign-in for a token of this repository.
    fn begin_login<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Login> {
        not_available("sign-in")
    }

    /// Returns the state of the sign-in.
    fn finish_login<'a>(&'a self, _id: &'a str) -> ServiceFuture<'a, LoginState> {
        not_available("sign-in")
    }

    /// The caller's own tokens, newest first.
    fn tokens(&self) -> ServiceFuture<'_, Vec<TokenView>> {
        not_available("tokens")
    }

    /// Revokes the caller's token. Returns false if there is no token with that id.
    fn revoke<'a>(&'a self, _id: &'a str) -> ServiceFuture<'a, bool> {
        not_available("tokens")
    }
}

/// A sign-in that has begun.
#[derive(Clone, Debug)]
pub struct Login {
    /// Identifier with which the client polls.
    pub id: String,
    /// The page at which a person signs in.
    pub url: String,
}

#[derive(Clone, Debug)]
pub enum LoginState {
    /// Poll again after this number of seconds.
    Waiting(u32),
    /// A placeholder that the server replaces by the token in this call's answer.
    Granted(String),
    /// The sign-in is unknown, expired, or already fetched.
    Gone,
}

/// A token as its owner may see it.
#[derive(Clone, Debug)]
pub struct TokenView {
    pub id: String,
    /// The name that its owner chose.
    pub name: String,
    /// Part of the token that may be displayed.
    pub hint: String,
    /// Scopes, such as `read` and `write`.
    pub scope: Vec<String>,
    /// Creation time in ms since 1970.
    pub created: u64,
    /// Expiry time in ms since 1970.
    pub expires: Option<u64>,
}
