//! `records`: the repositories that a call was handed, and no other.

use packhouse_store::Digest;
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::records::{Entry, Host, HostRepository, Matches};
use crate::call::RepositoryView;
use crate::imports::HostError;
use crate::imports::blobs::{BlobRep, UploadRep};
use crate::imports::transaction::TransactionRep;
use crate::state::{Access, HostState};

const MAX_SCAN: u32 = 1_000;
const MAX_KEYS: u32 = 10_000;
const MAX_SEARCH: u32 = 250;
const MAX_NOTE: usize = 4 << 10;
const MAX_NAMES: usize = 10_000;
const MAX_NAMES_BYTES: usize = 1 << 20;

/// One repository of the call.
pub struct RepositoryRep {
    pub(crate) view: RepositoryView,
    /// Whether it is the target, or one of the others.
    pub(crate) target: bool,
}

impl RepositoryRep {
    /// Whether its records may be changed: the target by an intent to write; a proxy's, which are its memory of its upstream, also
    /// while it is read.
    fn may_change(&self, access: Access) -> bool {
        match access {
            Access::Look => false,
            Access::Act(_) if self.view.kind == "proxy" => true,
            Access::Act(action) => self.target && action.writes(),
        }
    }

    fn may_upload(&self, access: Access) -> bool {
        matches!(access, Access::Act(action) if self.target && action.writes())
    }
}

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
        self.looked_outside = true;
        let view = self.reading(&repository)?;
        let _excused = self.clock.excuse();
        Ok(self.services.withheld(&view, names).await?)
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
        let found = match self.for_publish {
            true => storage.blob_for_publish(repository, sha256).await?,
            false => storage.blob(repository, sha256).await?,
        };
        let Some(blob) = found else {
            // Whether a blob that no record names is there changes with time and not with the records.
            self.looked_outside = true;
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
            let _excused = self.clock.excuse();
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
        self.looked_outside = true;
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

#[cfg(test)]
mod tests {
    use packhouse_store::RepositoryId;

    use super::*;
    use crate::request::Action;

    fn repository(kind: &str, target: bool) -> RepositoryRep {
        let view = RepositoryView {
            id: RepositoryId(1),
            name: "r".to_owned(),
            kind: kind.to_owned(),
            settings: "{}".into(),
        };
        RepositoryRep { view, target }
    }

    #[test]
    fn handles_match_the_intent() {
        let (hosted, other) = (repository("hosted", true), repository("hosted", false));
        for action in [Action::Publish, Action::Delete] {
            assert!(hosted.may_change(Access::Act(action)) && hosted.may_upload(Access::Act(action)));
            assert!(!other.may_change(Access::Act(action)) && !other.may_upload(Access::Act(action)));
        }
        for access in [Access::Look, Access::Act(Action::Read), Access::Act(Action::Open)] {
            assert!(!hosted.may_change(access) && !hosted.may_upload(access), "{access:?}");
        }
    }

    #[test]
    fn a_proxy_remembers_while_it_is_read() {
        for proxy in [repository("proxy", true), repository("proxy", false)] {
            assert!(proxy.may_change(Access::Act(Action::Read)));
            assert!(!proxy.may_upload(Access::Act(Action::Read)));
            assert!(!proxy.may_change(Access::Look));
        }
    }
}
