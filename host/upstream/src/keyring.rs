//! The credentials and tokens in use at one upstream.

use std::time::{Duration, Instant};

use http::HeaderValue;
use quick_cache::sync::Cache;

use super::credentials::Credentials;
use super::error::UpstreamError;

/// Maximum number of tokens to remember for one upstream.
const TOKENS: usize = 1000;
/// Interval after which credentials are read again, because another server may have changed them.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// The credentials and tokens in use at one upstream.
pub(crate) struct Keyring {
    tokens: Cache<String, GrantedToken>,
    credentials: tokio::sync::Mutex<Option<ReadCredentials>>,
}

/// An `Authorization` header that the upstream accepted.
#[derive(Clone)]
struct GrantedToken {
    header: HeaderValue,
    expires_at: Instant,
}

struct ReadCredentials {
    credentials: Option<Credentials>,
    read_at: Instant,
}

impl Default for Keyring {
    fn default() -> Keyring {
        Keyring { tokens: Cache::new(TOKENS), credentials: tokio::sync::Mutex::default() }
    }
}

impl Keyring {
    /// Returns the credentials. If the last load is too old, `read` loads them again. If they have
    /// changed, the tokens of the former credentials are dropped.
    pub(crate) async fn credentials(
        &self,
        read: impl Future<Output = Result<Option<Credentials>, UpstreamError>>,
    ) -> Result<Option<Credentials>, UpstreamError> {
        let mut known = self.credentials.lock().await;
        if let Some(known) = &*known
            && known.read_at.elapsed() < READ_AGAIN
        {
            return Ok(known.credentials.clone());
        }
        let found = read.await?;
        if known.as_ref().is_some_and(|known| known.credentials != found) {
            self.tokens.clear();
        }
        *known = Some(ReadCredentials { credentials: found.clone(), read_at: Instant::now() });
        Ok(found)
    }

    /// Returns the accepted `Authorization` header for this key, until it expires.
    pub(crate) fn get(&self, key: &str) -> Option<HeaderValue> {
        self.tokens.get(key).filter(|token| token.expires_at > Instant::now()).map(|token| token.header)
    }

    /// Remembers a header for `lifetime`.
    pub(crate) fn put(&self, key: &str, header: &HeaderValue, lifetime: Duration) {
        let token = GrantedToken { header: header.clone(), expires_at: Instant::now() + lifetime };
        self.tokens.insert(key.to_owned(), token);
    }

    /// Drops a header that is no longer accepted.
    pub(crate) fn forget(&self, key: &str) {
        self.tokens.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use packhouse_identity::Secret;

    use super::*;

    #[tokio::test]
    async fn changed_credentials_drop_the_tokens_of_the_former() {
        let of = |password: &str| {
            let password = Secret::new(password);
            Some(Credentials { username: "u".to_owned(), password, token_realm: None })
        };
        let keyring = Keyring::default();
        let read = async |found| keyring.credentials(async { Ok(found) }).await.unwrap();
        let has_token = || keyring.get("k").is_some();
        assert!(read(of("1")).await == of("1"));
        keyring.put("k", &HeaderValue::from_static("x"), READ_AGAIN);
        assert!(read(of("2")).await == of("1") && has_token(), "credentials are not read each time");
        let is_old = |keyring: &Keyring| {
            let mut own = keyring.credentials.try_lock().unwrap();
            own.as_mut().unwrap().read_at -= READ_AGAIN;
        };
        is_old(&keyring);
        assert!(read(of("1")).await == of("1") && has_token());
        is_old(&keyring);
        assert!(read(None).await.is_none() && !has_token());
    }
}
