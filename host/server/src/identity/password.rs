//! Passwords: Argon2id, on threads of its own and a few at a time, because one check costs tens of milliseconds and
//! megabytes by design.

use std::sync::{Arc, OnceLock};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use super::Secret;

/// A password as someone typed it.
pub(crate) type Password = Secret;
/// Argon2id in PHC form.
pub(crate) type PasswordHash = String;

/// Checks passwords, at most as many at once as there are processors.
#[derive(Clone)]
pub(crate) struct Passwords {
    places: Arc<Semaphore>,
}

impl Passwords {
    /// A checker for this process.
    pub(crate) fn new() -> Passwords {
        let places = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Passwords { places: Arc::new(Semaphore::new(places)) }
    }

    /// The hash to be kept.
    pub(crate) async fn hash(&self, password: Password) -> anyhow::Result<PasswordHash> {
        let _place = self.places.acquire().await?;
        tokio::task::spawn_blocking(move || hash(&password)).await?
    }

    /// Whether the password is that of the hash. With no hash, as for a member who is not known, a hash that nobody has
    /// the password of is checked instead, so that the answer takes as long.
    pub(crate) async fn check(&self, password: Password, known: Option<PasswordHash>) -> anyhow::Result<bool> {
        let _place = self.places.acquire().await?;
        tokio::task::spawn_blocking(move || {
            let right = verify(&password, known.as_deref().filter(|hash| !hash.is_empty()).unwrap_or(nobody()));
            Ok(right && known.is_some_and(|hash| !hash.is_empty()))
        })
        .await?
    }
}

/// A password that a member may set: 8 to 1024 bytes.
pub(crate) fn acceptable(password: &str) -> bool {
    (8..=1024).contains(&password.len())
}

fn hash(password: &Password) -> anyhow::Result<PasswordHash> {
    let hash = Argon2::default()
        .hash_password(password.reveal().as_bytes())
        .map_err(|error| anyhow::anyhow!("failed to hash a password: {error}"))?;
    Ok(hash.to_string())
}

fn verify(password: &Password, hash: &str) -> bool {
    Phc::new(hash)
        .is_ok_and(|parsed| Argon2::default().verify_password(password.reveal().as_bytes(), &parsed).is_ok())
}

/// The hash of a random password that is forgotten at once.
fn nobody() -> &'static str {
    static NOBODY: OnceLock<String> = OnceLock::new();
    NOBODY.get_or_init(|| hash(&super::mint().secret).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_checked_against_its_hash_alone() {
        let passwords = Passwords::new();
        let kept = passwords.hash(Secret::new("correct horse")).await.unwrap();
        assert!(kept.starts_with("$argon2id$"), "{kept}");
        assert!(passwords.check(Secret::new("correct horse"), Some(kept.clone())).await.unwrap());
        assert!(!passwords.check(Secret::new("correct hors"), Some(kept)).await.unwrap());
    }

    #[tokio::test]
    async fn nobody_signs_in_without_a_hash() {
        let passwords = Passwords::new();
        assert!(!passwords.check(Secret::new(""), None).await.unwrap());
        assert!(!passwords.check(Secret::new(""), Some(String::new())).await.unwrap());
    }
}
