//! `records`: the repositories that a call was handed, and no other.

use packhouse_store::Digest;
use wasmtime::Result;
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::bindings::packhouse::format::records::{self as wit, Entry, Host, HostRepository, Matches};
use crate::host_error::HostError;
use crate::state::HostState;
use crate::state::blobs::{BlobRep, UploadRep};
use crate::state::records::RepositoryRep;
use crate::state::transaction::TransactionRep;
use crate::view::RepositoryView;

const MAX_SCAN: u32 = 1_000;
const MAX_KEYS: u32 = 10_000;
const MAX_SEARCH: u32 = 250;
const MAX_NOTE: usize = 4 << 10;
const MAX_NAMES: usize = 10_000;
const MAX_NAMES_BYTES: usize = 1 << 20;

impl HostState {
    fn reading(&mut self, handle: &Resource<RepositoryRep>) -> Result<RepositoryView, HostError> {
        Ok(self.held(handle)?.view.clone())
    }

    fn changing(&mut self, handle: &Resource<RepositoryRep>) -> Result<RepositoryView, HostError> {
        let repository = self.held(handle)?;
        if !repository.may_change(self.access) {
            return Err(HostError::denied());
        }
        Ok(repository.view.clone())
    }
}

/// Offers the interface.
pub(super) fn add_to_linker(linker: &mut Linker<HostState>) -> Result<()> {
    wit::add_to_linker::<_, HasSelf<HostState>>(linker, |state| state)
}

impl Host for HostState {}

impl HostRepository for HostState {
    fn name(&mut self, repository: Resource<RepositoryRep>) -> Result<String> {
        Ok(self.held(&repository)?.view.name.clone())
    }

    fn kind(&mut self, repository: Resource<RepositoryRep>) -> Result<String> {
        Ok(self.held(&repository)?.view.kind.clone())
    }

    fn settings(&mut self, repository: Resource<RepositoryRep>) -> Result<String> {
        Ok(self.held(&repository)?.view.settings.as_ref().to_owned())
    }

    async fn get(
        &mut self,
        repository: Resource<RepositoryRep>,
        key: String,
    ) -> Result<Option<Entry>, HostError> {
        let repository = self.reading(&repository)?.id;
        Ok(self.storage()?.get(repository, &key).await?.map(entry))
    }

    async fn scan(
        &mut self,
        repository: Resource<RepositoryRep>,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Entry>, HostError> {
        let repository = self.reading(&repository)?.id;
        let limit = limit.min(MAX_SCAN);
        let found = self.storage()?.scan(repository, &prefix, after.as_deref(), limit).await?;
        Ok(found.into_iter().map(entry).collect())
    }

    async fn keys(
        &mut self,
        repository: Resource<RepositoryRep>,
        prefix: String,
        delimiter: Option<String>,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<String>, HostError> {
        let repository = self.reading(&repository)?.id;
        let delimiter = delimiter.as_deref().map(one_byte).transpose()?;
        let limit = limit.min(MAX_KEYS);
        Ok(self.storage()?.keys(repository, &prefix, delimiter, after.as_deref(), limit).await?)
    }

    async fn search(
        &mut self,
        repository: Resource<RepositoryRep>,
        text: String,
        offset: u32,
        limit: u32,
    ) -> Result<Matches, HostError> {
        let repository = self.reading(&repository)?.id;
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
        // Of groups that the target is a member of the answer's revisions say nothing.
        self.uncacheable = true;
        let view = self.reading(&repository)?;
        let _host_work = self.clock.begin_host_work();
        Ok(self.services.upstream.withheld(&view, names).await?)
    }

    fn begin(&mut self, repository: Resource<RepositoryRep>) -> Result<Resource<TransactionRep>, HostError> {
        let view = self.changing(&repository)?;
        Ok(self.push(TransactionRep::new(view.id))?)
    }

    async fn blob(
        &mut self,
        repository: Resource<RepositoryRep>,
        digest: String,
    ) -> Result<Option<Resource<BlobRep>>, HostError> {
        let digest: Digest = digest.parse()?;
        let sha256 = digest.sha256().ok_or_else(|| {
            HostError::invalid(format!("a blob is found by its sha256, not by {}", digest.algorithm))
        })?;
        let repository = self.reading(&repository)?.id;
        let storage = self.storage()?;
        let found = if self.for_publish {
            storage.blob_for_publish(repository, sha256).await?
        } else {
            storage.blob(repository, sha256).await?
        };
        let Some(blob) = found else {
            // Whether a blob that no record names is there changes with time and not with the records.
            self.uncacheable = true;
            return Ok(None);
        };
        Ok(Some(self.push(BlobRep::whole(blob))?))
    }

    async fn keep(
        &mut self,
        repository: Resource<RepositoryRep>,
        blob: Resource<BlobRep>,
    ) -> Result<String, HostError> {
        let view = self.changing(&repository)?;
        let blob = self.whole(&blob).await?;
        let digest = {
            let _host_work = self.clock.begin_host_work();
            blob.sha256().await?
        };
        // Durable with the next commit, or before the answer is sent.
        self.kept.push((view.id, blob));
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
        let id = self.reading(&repository)?.id;
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
        _ => Err(HostError::invalid(format!("a delimiter is one byte, not {delimiter:?}"))),
    }
}
