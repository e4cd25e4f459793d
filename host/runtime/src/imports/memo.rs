//! `memo`: pieces of documents that the plugin made before.

use bytes::Bytes;
use packhouse_store::Blob;
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::memo::{Host, HostMaking};
use crate::host_error::HostError;
use crate::state::HostState;
use crate::state::blobs::BlobRep;
use crate::state::memo::{Made, MakingRep};
use crate::state::records::RepositoryRep;

/// Bytes of the longest name.
const MAX_NAME: usize = 16 << 10;

impl Host for HostState {
    fn find(
        &mut self,
        of: Resource<RepositoryRep>,
        name: String,
    ) -> Result<Option<Resource<BlobRep>>, HostError> {
        check_name(&name)?;
        let view = &self.held(&of)?.view;
        let (seen, settings) = (view.seen(), view.settings.clone());
        // Who changes records reads what is there now.
        let Some(memos) = self.memos.as_ref().filter(|_| self.may_recall()) else { return Ok(None) };
        let Some(piece) = memos.find(&self.storage()?, seen, &settings, &name) else { return Ok(None) };
        self.reads.of(seen.repository).extend(&piece.dependencies);
        Ok(Some(self.push(BlobRep::piece(piece.blob.clone()))?))
    }
}

impl HostMaking for HostState {
    fn start(&mut self, of: Resource<RepositoryRep>, name: String) -> Result<Resource<MakingRep>, HostError> {
        check_name(&name)?;
        let view = &self.held(&of)?.view;
        let (seen, settings) = (view.seen(), view.settings.clone());
        if !self.start_making(seen, settings, name) {
            return Err(HostError::invalid("another piece is being made"));
        }
        Ok(self.push(MakingRep)?)
    }

    fn finish(
        &mut self,
        making: Resource<MakingRep>,
        bytes: Vec<u8>,
    ) -> Result<Resource<BlobRep>, HostError> {
        self.take(making)?;
        self.volume.count_written(bytes.len(), &self.limits)?;
        let blob = Blob::from_bytes(Bytes::from(bytes));
        if let Some(Made { making, dependencies: Some(dependencies) }) = self.end_making()
            && let Some(memos) = self.memos.as_ref().filter(|_| self.may_recall())
        {
            memos.remember(making.seen, making.settings, &making.name, blob.clone(), dependencies);
        }
        Ok(self.push(BlobRep::piece(blob))?)
    }

    fn drop(&mut self, making: Resource<MakingRep>) -> Result<()> {
        self.take(making)?;
        self.end_making();
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), HostError> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(HostError::invalid(format!("a piece's name of {} bytes", name.len())));
    }
    Ok(())
}
