//! The store's verbs whose writes are deferred: uses of credentials and of cached answers, refusals, and fetches of
//! files.

use crate::boxed;
use crate::error::StoreError;
use crate::ids::{AccessKeyId, CacheName, RepositoryId, TokenId, now_ms};
use crate::store::Store;
use crate::write_behind::{
    Count, Downloaded, Downloads, Refusal, RefusalsOfMinute, UsedAnswer, UsedCredential,
};

impl Store {
    /// Remembers that a token was used at `now` (ms since 1970). Costs no SQL: written every 30 s, and when the store is closed.
    pub fn token_used(&self, id: TokenId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::Token(id), now);
    }

    /// Remembers that an access key was used at `now` (ms since 1970), as [`Store::token_used`] does for a token.
    pub fn access_key_used(&self, id: AccessKeyId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::Key(id), now);
    }

    /// Writes what [`Store::token_used`] and [`Store::access_key_used`] remembered. `Unavailable` when it could not be written;
    /// it is kept for the next time.
    #[boxed]
    pub async fn write_token_use(&self) -> Result<(), StoreError> {
        self.inner.used_credentials.flush().await
    }

    /// Remembers that a cached answer is used now. Costs no SQL: written every 30 s, and when the store is closed.
    pub fn cache_used(&self, repository: RepositoryId, name: &CacheName) {
        self.inner.used_answers.add(UsedAnswer(repository, *name), now_ms());
    }

    /// Writes what [`Store::cache_used`] remembered. `Unavailable` when it could not be written; it is kept for the next time.
    #[boxed]
    pub async fn write_cache_use(&self) -> Result<(), StoreError> {
        self.inner.used_answers.flush().await
    }

    /// Counts a refusal at `now` (ms since 1970). Costs no SQL: written every 20 s, and when the store is closed.
    pub fn refused(&self, refusal: Refusal, now: i64) {
        let refusals = RefusalsOfMinute(now.div_euclid(60_000), refusal);
        self.inner.refusals.add(refusals, Count { times: 1, last: now });
    }

    /// Counts that this file was sent at `now` (ms since 1970), with `of_version` as a fetch of its version too, and remembers that of the
    /// token that is named. What is no file of a version is counted nowhere. Costs no SQL: written every 10 s, or 25 s where that takes
    /// long, and when the store is closed.
    pub fn downloaded(&self, what: Downloaded, of_version: bool, now: i64) {
        let downloads = Downloads { times: 1, of_version: u32::from(of_version), last: now };
        self.inner.downloads.add(what, downloads);
    }

    /// Writes what [`Store::downloaded`] counted. `Unavailable` when it could not be written; it is kept for the next time.
    #[boxed]
    pub async fn write_downloads(&self) -> Result<(), StoreError> {
        self.inner.downloads.flush().await
    }

    /// Writes what [`Store::refused`] counted. `Unavailable` when it could not be written; it is kept for the next time.
    #[boxed]
    pub async fn write_refusals(&self) -> Result<(), StoreError> {
        self.inner.refusals.flush().await
    }
}
