//! `records`: access to the repositories that were passed to the call, and to no other.

use std::sync::Arc;

use packhouse_names::runs_of_page;
use packhouse_store::{Digest, HeldBlob, KeyList, ReadPoint, RepositoryId, Sha256, ended_at, listed_to};
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::records::{Entry, Host, HostRepository, Matches, Run, RunList};
use crate::host_error::HostError;
use crate::request::Action;
use crate::state::blobs::{BlobRep, UploadRep};
use crate::state::records::RepositoryRep;
use crate::state::transaction::TransactionRep;
use crate::state::{Access, HostState};

const MAX_SCAN: u32 = 1_000;
const MAX_KEYS: u32 = 10_000;
const MAX_SEARCH: u32 = 250;
const MAX_NOTE: usize = 4 << 10;
const MAX_NAMES: usize = 10_000;
const MAX_NAMES_BYTES: usize = 1 << 20;

impl HostState {
    /// Returns the read point of a repository handle.
    fn reading(&self, handle: &Resource<RepositoryRep>) -> Result<ReadPoint, HostError> {
        Ok(self.held(handle)?.view.read_point())
    }

    /// Returns true if unchanged data may be read from memory. A call that changes records always
    /// reads the current ones.
    pub(super) fn may_recall(&self) -> bool {
        let only_reads =
            matches!(self.access, Access::ReadOnly | Access::Intent(Action::Read | Action::Open));
        only_reads && !self.changes
    }

    /// Logs what a call does with records, for the plugin's author.
    pub(super) fn log_record(&self, done: &str, key: &str) {
        let request_id = &*self.head.request_id;
        tracing::debug!(target: "packhouse::records", request_id, done, key, "a record");
    }

    /// Notes that the call read a record with this revision, or requested a missing one (none).
    fn note_found(&mut self, revision: Option<u64>) {
        self.newest_found = self.newest_found.zip(revision).map(|(newest, revision)| newest.max(revision));
    }

    fn changing(&self, handle: &Resource<RepositoryRep>) -> Result<RepositoryId, HostError> {
        let repository = self.held(handle)?;
        if !repository.may_change(self.access) {
            return Err(HostError::denied());
        }
        Ok(repository.view.id)
    }
}

impl HostState {
    async fn find_blob(
        &mut self,
        read_point: ReadPoint,
        sha256: Sha256,
    ) -> Result<Option<HeldBlob>, HostError> {
        let storage = self.storage()?;
        let found = if self.for_publish {
            let found = storage.blob_for_publish(read_point.repository, sha256).await;
            found.map(|found| found.map(|blob| HeldBlob { blob, named: false }))
        } else if self.may_recall() {
            storage.cached_held_blob(read_point, sha256).await
        } else {
            storage.held_blob(read_point.repository, sha256).await
        };
        if self.relies_on_blobs() { Ok(HeldBlob::usable(found).await?) } else { Ok(found?) }
    }

    /// Returns true if a publish may leave out blobs that this call finds. The call is then the
    /// publish itself, or a `HEAD` with which its client checks for a blob.
    fn relies_on_blobs(&self) -> bool {
        let asks = self.for_publish && self.head.method == "HEAD";
        asks || self.access == Access::Intent(Action::Publish)
    }

    async fn list(
        &mut self,
        repository: &Resource<RepositoryRep>,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<KeyList>, HostError> {
        let (read_point, storage) = (self.reading(repository)?, self.storage()?);
        self.log_record("listed", prefix);
        let found = if self.may_recall() {
            storage.cached_keys(read_point, prefix, delimiter, after, limit).await?
        } else {
            let found = storage.keys(read_point.repository, prefix, delimiter, after, limit).await?;
            Arc::new(found.into_iter().collect())
        };
        self.reads.of(read_point.repository).on_records(prefix, after, listed_to(&found, delimiter, limit));
        Ok(found)
    }
}

impl Host for HostState {}

impl HostRepository for HostState {
    fn name(&mut self, repository: Resource<RepositoryRep>) -> Result<String> {
        Ok(self.held(&repository)?.view.name.as_ref().to_owned())
    }

    fn kind(&mut self, repository: Resource<RepositoryRep>) -> Result<String> {
        Ok(self.held(&repository)?.view.kind.as_ref().to_owned())
    }

    fn settings(&mut self, repository: Resource<RepositoryRep>) -> Result<String> {
        Ok(self.held(&repository)?.view.settings.as_ref().to_owned())
    }

    async fn get(
        &mut self,
        repository: Resource<RepositoryRep>,
        key: String,
    ) -> Result<Option<Entry>, HostError> {
        let read_point = self.reading(&repository)?;
        self.reads.of(read_point.repository).on_record(&key);
        self.log_record("read", &key);
        let storage = self.storage()?;
        let found = if self.may_recall() {
            storage.cached_get(read_point, key).await?
        } else {
            let found = storage.get(read_point.repository, &key).await?;
            self.note_found(found.as_ref().map(|entry| entry.revision));
            found
        };
        Ok(found.map(entry))
    }

    async fn scan(
        &mut self,
        repository: Resource<RepositoryRep>,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Entry>, HostError> {
        let (read_point, storage) = (self.reading(&repository)?, self.storage()?);
        self.log_record("scanned", &prefix);
        let (limit, after) = (limit.min(MAX_SCAN), after.as_deref());
        let found = if self.may_recall() {
            storage.cached_scan(read_point, &prefix, after, limit).await?
        } else {
            storage.scan(read_point.repository, &prefix, after, limit).await?.into()
        };
        self.reads.of(read_point.repository).on_records(&prefix, after, ended_at(&found, limit));
        Ok(found.iter().cloned().map(entry).collect())
    }

    async fn keys(
        &mut self,
        repository: Resource<RepositoryRep>,
        prefix: String,
        delimiter: Option<String>,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<String>, HostError> {
        let delimiter = delimiter.as_deref().map(one_byte).transpose()?;
        let limit = limit.min(MAX_KEYS);
        let found = self.list(&repository, &prefix, delimiter, after.as_deref(), limit).await?;
        Ok(found.iter().map(str::to_owned).collect())
    }

    async fn runs(
        &mut self,
        repository: Resource<RepositoryRep>,
        prefix: String,
        after: Option<String>,
    ) -> Result<RunList, HostError> {
        let keys = self.list(&repository, &prefix, None, after.as_deref(), MAX_KEYS).await?;
        let more = listed_to(&keys, None, MAX_KEYS).is_some();
        let runs =
            runs_of_page(keys.iter(), more).into_iter().map(|(last, count)| Run { last, count }).collect();
        Ok(RunList { runs, more })
    }

    async fn search(
        &mut self,
        repository: Resource<RepositoryRep>,
        text: String,
        offset: u32,
        limit: u32,
    ) -> Result<Matches, HostError> {
        let repository = self.reading(&repository)?.repository;
        self.reads.of(repository).on_all_packages();
        let found = self.storage()?.search(repository, &text, offset, limit.min(MAX_SEARCH)).await?;
        Ok(Matches { names: found.names, total: found.total })
    }

    async fn withheld(
        &mut self,
        repository: Resource<RepositoryRep>,
        names: Vec<String>,
    ) -> Result<Vec<String>, HostError> {
        let bytes: usize = names.iter().map(String::len).sum();
        if names.len() > MAX_NAMES || bytes > MAX_NAMES_BYTES {
            return Err(HostError::invalid(format!("{} names of {bytes} bytes", names.len())));
        }
        // The answer also depends on groups that have the target as a member, and `reads` does not
        // cover those groups.
        self.uncacheable = true;
        let view = self.held(&repository)?.view.clone();
        let _host_work = self.clock.begin_host_work();
        Ok(self.services.upstream.withheld(&view, names).await?)
    }

    fn begin(&mut self, repository: Resource<RepositoryRep>) -> Result<Resource<TransactionRep>, HostError> {
        let id = self.changing(&repository)?;
        self.changes = true;
        Ok(self.push(TransactionRep::new(id))?)
    }

    async fn blob(
        &mut self,
        repository: Resource<RepositoryRep>,
        digest: String,
    ) -> Result<Option<Resource<BlobRep>>, HostError> {
        let digest: Digest = digest.parse()?;
        let sha256 = digest.sha256().ok_or_else(|| {
            HostError::invalid(format!("a blob is looked up by its sha256, not by {}", digest.algorithm))
        })?;
        let read_point = self.reading(&repository)?;
        let Some(HeldBlob { blob, named }) = self.find_blob(read_point, sha256).await? else {
            // A blob that no record names can appear or vanish without a commit, so the answer must
            // not be cached.
            self.uncacheable = true;
            self.blob_missing = true;
            self.newest_found = None;
            return Ok(None);
        };
        match named {
            true => self.reads.of(read_point.repository).on_blob(&blob),
            false => self.uncacheable = true,
        }
        Ok(Some(self.push(BlobRep::whole(blob))?))
    }

    async fn keep(
        &mut self,
        repository: Resource<RepositoryRep>,
        blob: Resource<BlobRep>,
    ) -> Result<String, HostError> {
        let id = self.changing(&repository)?;
        self.changes = true;
        let blob = self.whole(&blob).await?;
        let digest = {
            let _host_work = self.clock.begin_host_work();
            blob.sha256().await?
        };
        self.note_sent(&blob);
        // It becomes durable with the next commit, or before the answer is sent.
        self.blobs_to_keep.push((id, blob));
        Ok(digest.digest().to_string())
    }

    async fn begin_upload(
        &mut self,
        repository: Resource<RepositoryRep>,
        note: String,
    ) -> Result<String, HostError> {
        let repository = self.held(&repository)?;
        if !repository.may_upload(self.access) {
            return Err(HostError::denied());
        }
        if note.len() > MAX_NOTE {
            return Err(HostError::invalid(format!("a note of {} bytes", note.len())));
        }
        let id = repository.view.id;
        Ok(self.storage()?.begin_upload(id, &note).await?)
    }

    async fn upload(
        &mut self,
        repository: Resource<RepositoryRep>,
        name: String,
    ) -> Result<Option<Resource<UploadRep>>, HostError> {
        let target = self.held(&repository)?.target;
        let id = self.reading(&repository)?.repository;
        self.uncacheable = true;
        let Some(upload) = self.storage()?.upload(id, &name).await? else { return Ok(None) };
        let appended = self.appended.as_ref().filter(|appended| target && appended.upload == name);
        let received = appended.map_or(0, |appended| appended.received);
        Ok(Some(self.push(UploadRep { upload, received })?))
    }

    fn drop(&mut self, repository: Resource<RepositoryRep>) -> Result<()> {
        self.take(repository)?;
        Ok(())
    }
}

fn entry(entry: packhouse_store::Entry) -> Entry {
    Entry { key: entry.key, value: entry.value.into(), revision: entry.revision }
}

fn one_byte(delimiter: &str) -> Result<char, HostError> {
    match delimiter.as_bytes() {
        [byte] => Ok(char::from(*byte)),
        _ => Err(HostError::invalid(format!("a delimiter must be one byte, not {delimiter:?}"))),
    }
}
