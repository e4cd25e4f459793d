//! Passwords: Argon2id, on threads of its own and a few at a time, because one check costs tens of milliseconds and
//! megabytes by design.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use packhouse_config::Secret;

/// Checks passwords, at most as many at once as there are processors.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

impl Passwords {
    /// A checker for this process.
    pub fn new() -> Passwords {
        let places = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Passwords { places: Arc::new(Semaphore::new(places)) }
    }

    /// The hash to be kept, in PHC form.
    pub async fn hash(&self, password: Secret) -> anyhow::Result<String> {
        let _place = self.places.acquire().await?;
        metrics::counter!("packhouse_password_hashes_total").increment(1);
        tokio::task::spawn_blocking(move || hash(&password)).await?
    }

    /// Whether the password is that of the hash. With no hash, as for a member who is not known, one that no password has
    /// is checked instead, so that the answer takes as long.
    pub async fn check(&self, password: Secret, known: Option<String>) -> anyhow::Result<bool> {
        let _place = self.places.acquire().await?;
        metrics::counter!("packhouse_password_hashes_total").increment(1);
        let known = known.filter(|hash| !hash.is_empty());
        let right =
            tokio::task::spawn_blocking(move || verify(&password, known.as_deref().unwrap_or(NOBODY)))
                .await?;
        Ok(right)
    }
}

/// The hash of no password: a digest of zeros, made with the same effort as any other.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5bm9ib2R5bm9ibw$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn hash(password: &Secret) -> anyhow::Result<String> {
    let hash = Argon2::default()
        .hash_password(password.reveal().as_bytes())
        .map_err(|error| anyhow::anyhow!("failed to hash a password: {error}"))?;
    Ok(hash.to_string())
}

fn verify(password: &Secret, hash: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|parsed| Argon2::default().verify_password(password.reveal().as_bytes(), &parsed).is_ok())
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
        for password in ["", "password"] {
            assert!(!passwords.check(Secret::new(password), None).await.unwrap());
            assert!(!passwords.check(Secret::new(password), Some(String::new())).await.unwrap());
        }
    }

    #[test]
    fn the_hash_of_nobody_costs_as_much_as_any_other() {
        let made = hash(&Secret::new("x")).unwrap();
        let (made, nobody) = (PasswordHash::new(&made).unwrap(), PasswordHash::new(NOBODY).unwrap());
        assert_eq!(made.algorithm, nobody.algorithm);
        assert_eq!(made.params, nobody.params);
        assert_eq!(made.salt.map(|salt| salt.len()), nobody.salt.map(|salt| salt.len()));
        assert_eq!(made.hash.map(|hash| hash.len()), nobody.hash.map(|hash| hash.len()));
    }
}
