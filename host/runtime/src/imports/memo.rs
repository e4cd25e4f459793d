//! `memo`: pieces of documents that the plugin made earlier.

use std::sync::Arc;

use bytes::Bytes;
use packhouse_store::Blob;
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::memo::{Host, HostMaking, Noted};
use crate::host_error::HostError;
use crate::memos::MemoPiece;
use crate::state::HostState;
use crate::state::blobs::BlobRep;
use crate::state::memo::{FinishedPiece, Making, MakingRep};
use crate::state::records::RepositoryRep;

const MAX_NAME: usize = 16 << 10;
/// Most names in one request.
const MAX_NAMES: usize = 1_000;
/// Most bytes of the notes in one answer.
const MAX_NOTES: usize = 16 << 20;

/// A piece that was found, and its handle.
type Recalled = (Arc<MemoPiece>, Resource<BlobRep>);

impl HostState {
    /// Returns the memoized pieces of these names that are still valid, each with its handle.
    fn recall_pieces(
        &mut self,
        of: &Resource<RepositoryRep>,
        names: &[String],
    ) -> Result<Vec<Option<Recalled>>, HostError> {
        names.iter().try_for_each(|name| check_name(name))?;
        let view = &self.held(of)?.view;
        let (read_point, settings) = (view.read_point(), view.settings.clone());
        // A call that changes records must read the current records, not memoized pieces.
        let Some(memos) = self.memos.clone().filter(|_| self.may_recall()) else {
            return Ok(names.iter().map(|_| None).collect());
        };
        let storage = self.storage()?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let Some(piece) = memos.find(&storage, read_point, &settings, name) else {
                found.push(None);
                continue;
            };
            self.reads.of(read_point.repository).extend(&piece.dependencies);
            let handle = self.push(BlobRep::piece(piece.blob.clone()))?;
            found.push(Some((piece, handle)));
        }
        Ok(found)
    }

    fn finish_piece(
        &mut self,
        making: Resource<MakingRep>,
        note: Bytes,
        bytes: Bytes,
    ) -> Result<Resource<BlobRep>, HostError> {
        self.take(making)?;
        self.volume.count_written(note.len().saturating_add(bytes.len()), &self.limits)?;
        let blob = Blob::from_bytes(bytes);
        if let Some(FinishedPiece { making, dependencies: Some(dependencies) }) = self.end_making()
            && let Some(memos) = self.memos.as_ref().filter(|_| self.may_recall())
        {
            let Making { read_point, settings, name, .. } = making;
            memos.remember(read_point, settings, &name, (note, blob.clone()), dependencies);
        }
        Ok(self.push(BlobRep::piece(blob))?)
    }
}

impl Host for HostState {
    fn find(
        &mut self,
        of: Resource<RepositoryRep>,
        name: String,
    ) -> Result<Option<Resource<BlobRep>>, HostError> {
        let found = self.recall_pieces(&of, &[name])?;
        Ok(found.into_iter().flatten().next().map(|(_, handle)| handle))
    }

    fn find_noted(
        &mut self,
        of: Resource<RepositoryRep>,
        names: Vec<String>,
    ) -> Result<Vec<Option<Noted>>, HostError> {
        if names.len() > MAX_NAMES {
            return Err(HostError::invalid(format!("{} names of pieces", names.len())));
        }
        let found = self.recall_pieces(&of, &names)?;
        let notes: usize = found.iter().flatten().map(|(piece, _)| piece.note.len()).sum();
        if notes > MAX_NOTES {
            return Err(HostError::too_large(notes as u64));
        }
        let with_note =
            |(piece, body): Recalled| Noted { note: piece.note.to_vec(), size: piece.blob.size(), body };
        Ok(found.into_iter().map(|found| found.map(with_note)).collect())
    }
}

impl HostMaking for HostState {
    fn start(&mut self, of: Resource<RepositoryRep>, name: String) -> Result<Resource<MakingRep>, HostError> {
        check_name(&name)?;
        let view = &self.held(&of)?.view;
        let (read_point, settings) = (view.read_point(), view.settings.clone());
        if !self.start_making(read_point, settings, name) {
            return Err(HostError::invalid("another piece is being made"));
        }
        Ok(self.push(MakingRep)?)
    }

    fn finish(
        &mut self,
        making: Resource<MakingRep>,
        bytes: Vec<u8>,
    ) -> Result<Resource<BlobRep>, HostError> {
        self.finish_piece(making, Bytes::new(), bytes.into())
    }

    fn finish_noted(
        &mut self,
        making: Resource<MakingRep>,
        note: Vec<u8>,
        bytes: Vec<u8>,
    ) -> Result<Resource<BlobRep>, HostError> {
        self.finish_piece(making, note.into(), bytes.into())
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
