//! Credentials and tokens that are in use at one upstream.

use std::time::{Duration, Instant};

use http::HeaderValue;
use quick_cache::sync::Cache;

use super::credentials::Credentials;
use super::error::UpstreamError;

/// The number of tokens that are remembered for one upstream.
const TOKENS: usize = 1000;
/// Credentials are read again after this time: another server may have changed them.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// See the module.
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
    /// The credentials, which `read` finds where the last reading is too old. When they have changed, the tokens that the former
    /// ones brought are no longer used.
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

    /// The `Authorization` header that was accepted for this key, until it expires.
    pub(crate) fn get(&self, key: &str) -> Option<HeaderValue> {
        self.tokens.get(key).filter(|token| token.expires_at > Instant::now()).map(|token| token.header)
    }

    /// Remembers a header for `lifetime`.
    pub(crate) fn put(&self, key: &str, header: &HeaderValue, lifetime: Duration) {
        let token = GrantedToken { header: header.clone(), expires_at: Instant::now() + lifetime };
        self.tokens.insert(key.to_owned(), token);
    }

    /// Forgets a header that is no longer accepted.
    pub(crate) fn forget(&self, key: &str) {
        self.tokens.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use packhouse_identity::Secret;

    use super::*;

    #[tokio::test]
    async fn with_other_credentials_nothing_is_shown_of_the_former() {
        let of = |password: &str| {
            let password = Secret::new(password);
            Some(Credentials { username: "u".to_owned(), password, token_realm: None })
        };
        let keyring = Keyring::default();
        let read = async |found| keyring.credentials(async { Ok(found) }).await.unwrap();
        let shown = || keyring.get("k").is_some();
        assert!(read(of("1")).await == of("1"));
        keyring.put("k", &HeaderValue::from_static("x"), READ_AGAIN);
        assert!(read(of("2")).await == of("1") && shown(), "they are not read each time");
        let is_old = |keyring: &Keyring| {
            let mut own = keyring.credentials.try_lock().unwrap();
            own.as_mut().unwrap().read_at -= READ_AGAIN;
        };
        is_old(&keyring);
        assert!(read(of("1")).await == of("1") && shown());
        is_old(&keyring);
        assert!(read(None).await.is_none() && !shown());
    }
}
