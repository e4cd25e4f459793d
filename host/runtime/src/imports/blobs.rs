//! `blobs`: bytes as handles, bytes that a plugin writes, and uploads that outlive a request.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use packhouse_store::{Algorithm, Blob};
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::blobs::{Host, HostBlob, HostUpload, HostWriter, Part, Section};
use crate::host_error::HostError;
use crate::imports::decode;
use crate::joined::{Cut, JoinedPart};
use crate::request::Action;
use crate::state::blobs::{BlobContent, BlobRep, UploadRep, WriterRep};
use crate::state::{Access, HostState, Phase};

/// Most bytes of one `read`.
const MAX_READ: u32 = 1 << 20;
/// Longest needle of `find`, in bytes.
const MAX_NEEDLE: usize = 4 << 10;

impl HostState {
    /// Returns the bytes of a handle once all have arrived. The waiting time does not count as time
    /// of the guest.
    pub(crate) async fn whole(&mut self, handle: &Resource<BlobRep>) -> Result<Blob, HostError> {
        match &self.held(handle)?.0 {
            BlobContent::Whole(blob) | BlobContent::Cut(blob, _) => Ok(blob.clone()),
            BlobContent::Arriving(arriving) => {
                let arriving = arriving.clone();
                self.turn = None;
                let _host_work = self.clock.begin_host_work();
                Ok(arriving.wait().await?)
            }
            BlobContent::Joined(joined) => {
                let blob = Blob::from_bytes(joined.concat());
                *self.held_mut(handle)? = BlobRep::whole(blob.clone());
                Ok(blob)
            }
        }
    }

    async fn write_bytes(&mut self, writer: &Resource<WriterRep>, bytes: Vec<u8>) -> Result<(), HostError> {
        self.volume.count_written(bytes.len(), &self.limits)?;
        let storage = self.storage()?;
        Ok(self.held_mut(writer)?.write(Bytes::from(bytes), &storage).await?)
    }

    /// Appends a section of a blob to the written bytes. Returns `invalid` if the section is not
    /// within the blob.
    async fn append_section(
        &mut self,
        writer: &Resource<WriterRep>,
        of: &Resource<BlobRep>,
        offset: u64,
        length: u64,
    ) -> Result<(), HostError> {
        let (blob, cut) = (self.whole(of).await?, self.cut(of)?);
        let end = end_within(&blob, offset, length)?;
        self.volume.count_written(usize::try_from(length).unwrap_or(usize::MAX), &self.limits)?;
        let (storage, clock) = (self.storage()?, Arc::clone(&self.clock));
        let writer = self.held_mut(writer)?;
        if let Some(all) = blob.made_in_memory() {
            // The size of bytes in memory fits into `usize`.
            let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
            let bytes = all.slice(index(offset)..index(end));
            let cut = cut.map(|Cut { of, start }| Cut { of, start: start + offset });
            return Ok(writer.add(JoinedPart { bytes, cut }, &storage).await?);
        }
        let _host_work = clock.begin_host_work();
        let mut bytes = blob.stream(offset..end);
        while let Some(bytes) = bytes.next().await {
            writer.write(bytes?, &storage).await?;
        }
        Ok(())
    }

    /// Position of a handle's bytes within a memoized blob.
    fn cut(&self, handle: &Resource<BlobRep>) -> Result<Option<Cut>, HostError> {
        Ok(match &self.held(handle)?.0 {
            BlobContent::Cut(_, cut) => Some(cut.clone()),
            _ => None,
        })
    }
}

/// Returns the end of `length` bytes at `offset`, or `invalid` if they are not within the blob.
fn end_within(blob: &Blob, offset: u64, length: u64) -> Result<u64, HostError> {
    let size = blob.size();
    let end = offset.checked_add(length).filter(|end| *end <= size);
    end.ok_or_else(|| HostError::invalid(format!("{length} bytes at {offset} are not within {size}")))
}

impl Host for HostState {}

impl HostBlob for HostState {
    async fn size(&mut self, blob: Resource<BlobRep>) -> Result<u64, HostError> {
        Ok(self.whole(&blob).await?.size())
    }

    async fn digest(&mut self, blob: Resource<BlobRep>, algorithm: String) -> Result<String, HostError> {
        let algorithm: Algorithm = algorithm.parse()?;
        let blob = self.whole(&blob).await?;
        if let Some(known) = blob.known(algorithm) {
            self.note_sent(&blob);
            return Ok(known.to_string());
        }
        self.turn = None;
        let digest = {
            let _host_work = self.clock.begin_host_work();
            blob.digest(algorithm).await?
        };
        self.note_sent(&blob);
        Ok(digest.to_string())
    }

    async fn read(
        &mut self,
        blob: Resource<BlobRep>,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, HostError> {
        if let BlobContent::Arriving(arriving) = &self.held(&blob)?.0 {
            let arriving = arriving.clone();
            let _host_work = self.clock.begin_host_work();
            return Ok(arriving.read_at(offset, length.min(MAX_READ)).await?.into());
        }
        let blob = self.whole(&blob).await?;
        let length = u64::from(length.min(MAX_READ)).min(blob.size().saturating_sub(offset));
        // Bounded by MAX_READ, so it fits.
        let length = u32::try_from(length).unwrap_or(MAX_READ);
        if length == 0 {
            return Ok(Vec::new());
        }
        Ok(blob.read_at(offset, length).await?.into())
    }

    async fn find(
        &mut self,
        blob: Resource<BlobRep>,
        needle: Vec<u8>,
        start: u64,
        end: u64,
    ) -> Result<Option<u64>, HostError> {
        if needle.is_empty() || needle.len() > MAX_NEEDLE {
            return Err(HostError::invalid(format!("a needle of {} bytes", needle.len())));
        }
        if start > end {
            return Err(HostError::invalid(format!("the start {start} is past the end {end}")));
        }
        let blob = self.whole(&blob).await?;
        let end = end.min(blob.size());
        if start >= end {
            return Ok(None);
        }
        Ok(blob.find(&needle, start, end).await?)
    }

    async fn slice(
        &mut self,
        handle: Resource<BlobRep>,
        offset: u64,
        length: u64,
    ) -> Result<Resource<BlobRep>, HostError> {
        let blob = self.whole(&handle).await?;
        end_within(&blob, offset, length)?;
        let slice = blob.slice(offset, length)?;
        let slice = match self.cut(&handle)? {
            Some(Cut { of, start }) => BlobRep(BlobContent::Cut(slice, Cut { of, start: start + offset })),
            None => BlobRep::whole(slice),
        };
        Ok(self.push(slice)?)
    }

    async fn decode(
        &mut self,
        blob: Resource<BlobRep>,
        encoding: String,
        limit: u64,
        digests: Vec<String>,
    ) -> Result<Resource<BlobRep>, HostError> {
        let encoding = decode::Encoding::named(&encoding)?;
        let digests = digests.iter().map(|name| name.parse()).collect::<Result<Vec<Algorithm>, _>>()?;
        let blob = self.whole(&blob).await?;
        let limit = limit.min(decode::most(blob.size())).min(self.volume.may_decode(&self.limits));
        let stager = self.storage()?.stage(&digests, limit).of(self.repository);
        let decoded = {
            let _host_work = self.clock.begin_host_work();
            decode::decode(&blob, encoding, stager).await?
        };
        self.volume.count_decoded(decoded.size());
        Ok(self.push(BlobRep::whole(decoded))?)
    }

    fn drop(&mut self, blob: Resource<BlobRep>) -> Result<()> {
        self.take(blob)?;
        Ok(())
    }
}

impl HostWriter for HostState {
    fn new(&mut self) -> Result<Resource<WriterRep>> {
        self.reach(Phase::Serve, "blobs.[constructor]writer")?;
        let limit = self.volume.may_write(&self.limits);
        Ok(self.push(WriterRep::new(limit, self.repository))?)
    }

    async fn write(&mut self, writer: Resource<WriterRep>, bytes: Vec<u8>) -> Result<(), HostError> {
        self.write_bytes(&writer, bytes).await
    }

    async fn append(
        &mut self,
        writer: Resource<WriterRep>,
        handle: Resource<BlobRep>,
    ) -> Result<(), HostError> {
        let size = self.whole(&handle).await?.size();
        self.append_section(&writer, &handle, 0, size).await
    }

    async fn write_parts(&mut self, writer: Resource<WriterRep>, parts: Vec<Part>) -> Result<(), HostError> {
        for part in parts {
            match part {
                Part::Bytes(bytes) => self.write_bytes(&writer, bytes).await?,
                Part::Section(Section { of, offset, length }) => {
                    self.append_section(&writer, &of, offset, length).await?;
                }
            }
        }
        Ok(())
    }

    async fn finish(&mut self, writer: Resource<WriterRep>) -> Result<Resource<BlobRep>, HostError> {
        let written = self.take(writer)?.finish().await?;
        Ok(self.push(written)?)
    }

    fn drop(&mut self, writer: Resource<WriterRep>) -> Result<()> {
        self.take(writer)?;
        Ok(())
    }
}

impl HostUpload for HostState {
    fn note(&mut self, upload: Resource<UploadRep>) -> Result<String> {
        Ok(self.held(&upload)?.upload.note().to_owned())
    }

    fn length(&mut self, upload: Resource<UploadRep>) -> Result<u64> {
        Ok(self.held(&upload)?.upload.length())
    }

    fn received(&mut self, upload: Resource<UploadRep>) -> Result<u64> {
        Ok(self.held(&upload)?.received)
    }

    async fn finish(&mut self, upload: Resource<UploadRep>) -> Result<Resource<BlobRep>, HostError> {
        let upload = self.take(upload)?.upload;
        if self.access != Access::Intent(Action::Publish) {
            return Err(HostError::denied());
        }
        let finished = {
            let _host_work = self.clock.begin_host_work();
            upload.finish().await?
        };
        let blob = finished
            .ok_or_else(|| HostError::invalid("the upload was deleted or changed in the meantime"))?;
        Ok(self.push(BlobRep::whole(blob))?)
    }

    async fn abort(&mut self, upload: Resource<UploadRep>) -> Result<(), HostError> {
        let upload = self.take(upload)?.upload;
        match self.access {
            Access::Intent(action) if action.writes() => Ok(upload.abort().await?),
            _ => Err(HostError::denied()),
        }
    }

    fn drop(&mut self, upload: Resource<UploadRep>) -> Result<()> {
        self.take(upload)?;
        Ok(())
    }
}
