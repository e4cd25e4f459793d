//! Uploads of the memory host.

use crate::blob::MemoryBlob;
use crate::call::Rights;
use crate::state::UploadState;
use packhouse_sdk::host::{HostBlob, HostUpload};
use packhouse_sdk::{Action, Error};

/// Upload, in its state at the time of the look-up.
pub(crate) struct MemoryUpload {
    pub(crate) rights: Rights,
    pub(crate) repository: String,
    pub(crate) name: String,
    pub(crate) upload: UploadState,
    pub(crate) received: u64,
}

impl MemoryUpload {
    fn remove(&self) {
        let mut state = self.rights.host.borrow_mut();
        if let Some(repository) = state.repositories.get_mut(&self.repository) {
            repository.uploads.remove(&self.name);
        }
    }
}

impl HostUpload for MemoryUpload {
    fn note(&self) -> String {
        self.upload.note.clone()
    }

    fn length(&self) -> u64 {
        self.upload.bytes.len() as u64
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        if self.rights.action != Some(Action::Publish) || !self.rights.may_write(&self.repository) {
            return Err(Error::Denied);
        }
        self.remove();
        Ok(MemoryBlob::boxed(self.upload.bytes))
    }

    fn abort(self: Box<Self>) -> Result<(), Error> {
        if !self.rights.may_write(&self.repository) {
            return Err(Error::Denied);
        }
        self.remove();
        Ok(())
    }
}
