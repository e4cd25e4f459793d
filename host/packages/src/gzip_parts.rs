//! Compresses a document to one gzip stream of separately compressed parts. If a document contains
//! cached pieces, only the new parts need to be compressed. The blocks of a part do not refer to
//! earlier data, so the blocks of all parts can be concatenated (RFC 1951, section 3.2). RFC 1952,
//! section 2.3 defines the header and the trailer.

use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use packhouse_runtime::{Cut, Joined, JoinedPart};
use packhouse_store::Algorithm;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Maximum size of all cached compressed parts together, in bytes.
const TOTAL_BYTES: u64 = 8 * 1024 * 1024;
/// Memory of an entry in addition to its content, in bytes.
const ENTRY_BYTES: u64 = 192;
/// Minimum size of a part that is compressed separately, in bytes. Smaller parts compress badly on
/// their own.
const MIN_BYTES: usize = 8 * 1024;
/// Compression level: the level of [`Effort::High`](crate::encoder::Effort::High).
const LEVEL: u32 = 6;
/// The gzip header: deflate, no name, no time, no system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// An empty block that is marked as the last one.
const END: [u8; 2] = [3, 0];

pub(crate) struct GzipParts {
    made: Cache<PartKey, Arc<GzipPart>, PartWeight>,
}

/// SHA-256 of the blob from which a part was cut, the part's offset in this blob, and the part's
/// length.
type PartKey = (Vec<u8>, u64, u64);

/// Compressed blocks of a part, which end at a byte boundary, and the checksum of the part's
/// content.
struct GzipPart {
    blocks: Vec<u8>,
    crc: Crc,
}

impl Default for GzipParts {
    fn default() -> Self {
        let items = usize::try_from(TOTAL_BYTES / (16 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        Self { made: Cache::with_weighter(items, TOTAL_BYTES, PartWeight) }
    }
}

impl GzipParts {
    /// Compresses the document. Returns `None` if that saves less than an eighth or the result
    /// exceeds `most` bytes.
    pub(crate) fn encode(&self, joined: &Joined, most: usize) -> Option<Bytes> {
        let size = usize::try_from(joined.size()).ok()?;
        let most = most.min(size - size / 8);
        let mut stream = Stream { bytes: HEADER.to_vec(), crc: Crc::new(), small: Vec::new() };
        for part in joined.parts() {
            match key(part) {
                Some(key) => {
                    let part = self.part(key, &part.bytes).ok()?;
                    stream.add(&part).ok()?;
                }
                None => stream.small.extend_from_slice(&part.bytes),
            }
            if stream.bytes.len() > most {
                return None;
            }
        }
        let encoded = stream.finish().ok()?;
        (encoded.len() <= most).then(|| Bytes::from(encoded.into_boxed_slice()))
    }

    fn part(&self, key: PartKey, bytes: &[u8]) -> io::Result<Arc<GzipPart>> {
        self.made.get_or_insert_with(&key, || GzipPart::of(bytes).map(Arc::new))
    }
}

/// Returns the cache key of a part. Returns `None` for small parts and for parts that exist only in
/// this document.
fn key(JoinedPart { bytes, cut }: &JoinedPart) -> Option<PartKey> {
    let Cut { of, start } = cut.as_ref().filter(|_| bytes.len() >= MIN_BYTES)?;
    Some((of.known(Algorithm::Sha256)?.bytes, *start, bytes.len() as u64))
}

impl GzipPart {
    fn of(bytes: &[u8]) -> io::Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
        encoder.write_all(bytes)?;
        // Flushing ends the blocks at a byte boundary without ending the stream.
        encoder.flush()?;
        let mut crc = Crc::new();
        crc.update(bytes);
        let mut blocks = std::mem::take(encoder.get_mut());
        blocks.shrink_to_fit();
        Ok(Self { blocks, crc })
    }
}

/// A gzip stream in progress.
struct Stream {
    bytes: Vec<u8>,
    crc: Crc,
    /// Small parts, which are compressed together before the next large part.
    small: Vec<u8>,
}

impl Stream {
    fn add(&mut self, part: &GzipPart) -> io::Result<()> {
        self.add_small()?;
        self.put(part);
        Ok(())
    }

    fn add_small(&mut self) -> io::Result<()> {
        if !self.small.is_empty() {
            let part = GzipPart::of(&self.small)?;
            self.small.clear();
            self.put(&part);
        }
        Ok(())
    }

    fn put(&mut self, part: &GzipPart) {
        self.bytes.extend_from_slice(&part.blocks);
        self.crc.combine(&part.crc);
    }

    fn finish(mut self) -> io::Result<Vec<u8>> {
        self.add_small()?;
        self.bytes.extend_from_slice(&END);
        self.bytes.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.bytes.extend_from_slice(&self.crc.amount().to_le_bytes());
        Ok(self.bytes)
    }
}

#[derive(Clone)]
struct PartWeight;

impl Weighter<PartKey, Arc<GzipPart>> for PartWeight {
    fn weight(&self, _: &PartKey, part: &Arc<GzipPart>) -> u64 {
        ENTRY_BYTES + part.blocks.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::tests::decoded;
    use packhouse_store::Blob;
    use packhouse_wire::content_coding::Coding;
    use proptest::prelude::*;

    const MOST: usize = 1 << 20;

    fn document(parts: &[(String, bool)]) -> Joined {
        let part = |(text, remembered): &(String, bool)| {
            let of = Blob::from_bytes(format!("note{text}").into());
            let cut = remembered.then(|| Cut { of, start: 4 });
            JoinedPart { bytes: Bytes::from(text.clone()), cut }
        };
        Joined::of(parts.iter().map(part).collect())
    }

    /// Returns a document whose parts have known digests, like a document whose tag was computed.
    async fn tagged(parts: &[(String, bool)]) -> Joined {
        let document = document(parts);
        for part in document.parts() {
            if let Some(cut) = &part.cut {
                cut.of.sha256().await.unwrap();
            }
        }
        document
    }

    #[tokio::test]
    async fn parts_are_compressed_once() {
        let parts = GzipParts::default();
        let text = |number: usize| format!("{number},").repeat(8000);
        let one = tagged(&[("[".to_owned(), false), (text(1), true), (text(2), true)]).await;
        let other = tagged(&[(text(2), true), (",".to_owned(), false), (text(3), true)]).await;
        for (document, made) in [(&one, 2), (&other, 3), (&one, 3)] {
            let encoded = parts.encode(document, MOST).unwrap();
            assert_eq!(decoded(&encoded, Coding::Gzip), document.concat());
            assert_eq!(parts.made.len(), made);
        }
        assert!(parts.encode(&one, 20).is_none(), "the result is too large");
    }

    #[tokio::test]
    async fn incompressible_content_is_not_encoded() {
        let noise: Vec<u8> = (0..64 << 10).map(|_| rand::random()).collect();
        let document = Joined::of(vec![JoinedPart { bytes: noise.into(), cut: None }]);
        assert!(GzipParts::default().encode(&document, MOST).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn decoding_restores_the_content(
            parts in prop::collection::vec(("[a-f]{1,8}", 1_usize..8000, any::<bool>()), 1..12),
        ) {
            let parts: Vec<(String, bool)> =
                parts.into_iter().map(|(word, times, remembered)| (word.repeat(times), remembered)).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let document = runtime.block_on(tagged(&parts));
            if let Some(encoded) = GzipParts::default().encode(&document, usize::MAX) {
                prop_assert_eq!(decoded(&encoded, Coding::Gzip), document.concat());
            }
        }
    }
}
