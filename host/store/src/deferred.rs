//! Writes that the store defers: uses of credentials and of cached responses, refusals, and
//! downloads of files.

use crate::boxed;
use crate::error::StoreError;
use crate::ids::{AccessKeyId, ApiTokenId, CacheName, RepositoryId, TokenId, now_ms};
use crate::store::Store;
use crate::write_behind::{
    Count, Downloaded, Downloads, Refusal, RefusalsOfMinute, UsedAnswer, UsedCredential,
};

impl Store {
    /// Records that a token was used at `now` (ms since 1970). No SQL runs here: the store writes
    /// the use within 30 s, and when it closes.
    pub fn token_used(&self, id: TokenId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::Token(id), now);
    }

    /// Records that an access key was used at `now` (ms since 1970), as [`Store::token_used`] does
    /// for a token.
    pub fn access_key_used(&self, id: AccessKeyId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::Key(id), now);
    }

    /// Records that an API token was used at `now` (ms since 1970), as [`Store::token_used`] does
    /// for a token.
    pub fn api_token_used(&self, id: ApiTokenId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::ApiToken(id), now);
    }

    /// Writes the uses from [`Store::token_used`], [`Store::access_key_used`] and
    /// [`Store::api_token_used`]. If this fails with `Unavailable`, the uses stay pending for the
    /// next call.
    #[boxed]
    pub async fn write_token_use(&self) -> Result<(), StoreError> {
        self.inner.used_credentials.flush().await
    }

    /// Records the use of a cached response. No SQL runs here: the store writes the use within 30
    /// s, and when it closes.
    pub fn cache_used(&self, repository: RepositoryId, name: &CacheName) {
        self.inner.used_answers.add(UsedAnswer(repository, *name), now_ms());
    }

    /// Writes the uses from [`Store::cache_used`]. If this fails with `Unavailable`, the uses stay
    /// pending for the next call.
    #[boxed]
    pub async fn write_cache_use(&self) -> Result<(), StoreError> {
        self.inner.used_answers.flush().await
    }

    /// Counts a refusal at `now` (ms since 1970). No SQL runs here: the store writes the count
    /// within 20 s, and when it closes.
    pub fn refused(&self, refusal: Refusal, now: i64) {
        let refusals = RefusalsOfMinute(now.div_euclid(60_000), refusal);
        self.inner.refusals.add(refusals, Count { times: 1, last: now });
    }

    /// Counts a download of this file at `now` (ms since 1970), and records it for the token if one
    /// is named. With `of_version`, the download also counts as a fetch of the version. Files
    /// outside of versions are not counted.
    ///
    /// No SQL runs here: the store writes the count within 10 s, or 25 s if writing takes long, and
    /// when it closes.
    pub fn downloaded(&self, what: Downloaded, of_version: bool, now: i64) {
        let downloads = Downloads { times: 1, of_version: u32::from(of_version), last: now };
        self.inner.downloads.add(what, downloads);
    }

    /// Writes the counts from [`Store::downloaded`]. If this fails with `Unavailable`, the counts
    /// stay pending for the next call.
    #[boxed]
    pub async fn write_downloads(&self) -> Result<(), StoreError> {
        self.inner.downloads.flush().await
    }

    /// Writes the counts from [`Store::refused`]. If this fails with `Unavailable`, the counts stay
    /// pending for the next call.
    #[boxed]
    pub async fn write_refusals(&self) -> Result<(), StoreError> {
        self.inner.refusals.flush().await
    }
}
