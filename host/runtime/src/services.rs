//! What the server does for a plugin beyond storage: upstream, identity and signing, for one call and its caller.

use std::future::Future;
use std::pin::Pin;

use packhouse_store::{Arriving, Digest};

use crate::call::RepositoryView;

/// What a service's function gives.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ServiceError>> + Send + 'a>>;

/// Why a service did not do what it was asked; the plugin gets it as the contract's `error`.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Not within this call's rights.
    #[error("denied")]
    Denied,
    /// The arguments make no sense: says which.
    #[error("invalid: {0}")]
    Invalid(String),
    /// More bytes than the limit: how many.
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    /// The upstream cannot be reached.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The caller has too much under way: it ends the call, and the client is told to wait.
    #[error("too many; wait {retry_after_s} s")]
    TooMany {
        /// Seconds until it may succeed.
        retry_after_s: u64,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
    /// The host's own storage failed: it ends the call.
    #[error("storage: {0}")]
    Store(#[from] packhouse_store::StoreError),
}

/// The server's side of the interfaces `upstream`, `identity` and `signing`, and of what it alone knows of names. One value stands for one caller; every function's
/// default is that the service is not available.
pub trait Services: Send + Sync + 'static {
    /// Asks a proxy's upstream. Returns at once; the reply's functions wait.
    fn fetch(&self, _proxy: &RepositoryView, _fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        Err(ServiceError::Unavailable("this host has no upstreams".to_owned()))
    }

    /// Of these packages those that must not be asked of an upstream for what this repository serves, in their order.
    fn withheld<'a>(
        &'a self,
        _repository: &'a RepositoryView,
        _names: Vec<String>,
    ) -> ServiceFuture<'a, Vec<String>> {
        not_available("names")
    }

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

    /// Public keys of the repository's format and organization, the one in use first.
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        not_available("signing")
    }

    /// An ECDSA signature (ASN.1 DER) over SHA-256 of `message`.
    fn sign<'a>(&'a self, _target: &'a RepositoryView, _message: &'a [u8]) -> ServiceFuture<'a, Signature> {
        not_available("signing")
    }
}

fn not_available<'a, T: Send + 'a>(what: &'static str) -> ServiceFuture<'a, T> {
    Box::pin(async move { Err(ServiceError::Other(format!("{what}: not available"))) })
}

/// Offers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServices;

impl Services for NoServices {}

/// What a plugin asks of an upstream.
#[derive(Clone, Debug, Default)]
pub struct Fetch {
    /// `GET`, `HEAD` or `POST`.
    pub method: String,
    /// Below the upstream's address, or absolute.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Of a `POST`.
    pub body: Option<Vec<u8>>,
    /// Without it, the repository's own setting.
    pub fresh: Option<Freshness>,
    /// What it must turn out to be.
    pub expect: Vec<Digest>,
    /// Bytes at most.
    pub limit: Option<u64>,
    /// Package, version and path to show it as once it is kept.
    pub show_as: Option<(String, String, String)>,
}

/// How long an answer may be served without asking again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Freshness {
    /// For ever.
    Immutable,
    /// So many seconds.
    Seconds(u32),
    /// Not at all.
    Never,
}

/// An upstream's reply, which may still be under way.
pub trait Reply: Send + Sync + 'static {
    /// Waits for the headers.
    fn status(&self) -> ServiceFuture<'_, u16>;
    /// Waits for the headers.
    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>>;
    /// Where it came from after redirects.
    fn address(&self) -> ServiceFuture<'_, String>;
    /// As [`Fetch::expect`].
    fn expect(&mut self, digest: Digest);
    /// The bytes, which may still be arriving.
    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving>;
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

/// A key by which signatures may be checked.
#[derive(Clone, Debug)]
pub struct PublicKey {
    /// Names it in signatures.
    pub id: String,
    /// As `ecdsa-sha2-nistp256`.
    pub kind: String,
    /// Its SubjectPublicKeyInfo in base64.
    pub key: String,
    /// In ms since 1970.
    pub expires: Option<u64>,
}

/// A signature and the key it is by.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Of the public key.
    pub key_id: String,
    /// ASN.1 DER.
    pub value: Vec<u8>,
}
