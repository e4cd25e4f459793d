//! A gzip stream of parts that are compressed each by itself, so that of a document which is made of remembered pieces only those are
//! compressed that are new (RFC 1951 §3.2: blocks that refer to nothing before them can stand one behind the other; RFC 1952 §2.3 for
//! what surrounds them).

use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use packhouse_runtime::{Cut, Joined, JoinedPart};
use packhouse_store::Algorithm;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Bytes of all parts that are remembered.
const TOTAL_BYTES: u64 = 8 * 1024 * 1024;
/// What one costs besides its bytes.
const ENTRY_BYTES: u64 = 192;
/// Bytes of a part from which on it is compressed by itself: of a smaller one too little is known to compress it well.
const LEAST_BYTES: usize = 8 * 1024;
/// As [`Effort::High`](crate::encoder::Effort::High).
const LEVEL: u32 = 6;
/// The header: deflate, no name, no time, no system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// An empty block that is the last.
const END: [u8; 2] = [3, 0];

/// The parts that were compressed.
pub(crate) struct GzipParts {
    made: Cache<PartKey, Arc<GzipPart>, PartWeight>,
}

/// What a part was cut out of, by its SHA-256, where it begins in that, and its length.
type PartKey = (Vec<u8>, u64, u64);

/// A part, as blocks that end with a whole byte, and the check value of what it is.
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
    /// The document, compressed; none where that saves less than an eighth, or it is more than `most` bytes.
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

/// What a part is found by; none of one that is small, or was written for this document alone.
fn key(JoinedPart { bytes, cut }: &JoinedPart) -> Option<PartKey> {
    let Cut { of, start } = cut.as_ref().filter(|_| bytes.len() >= LEAST_BYTES)?;
    Some((of.known(Algorithm::Sha256)?.bytes, *start, bytes.len() as u64))
}

impl GzipPart {
    fn of(bytes: &[u8]) -> io::Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
        encoder.write_all(bytes)?;
        // Ends with a whole byte, and not the stream.
        encoder.flush()?;
        let mut crc = Crc::new();
        crc.update(bytes);
        let mut blocks = std::mem::take(encoder.get_mut());
        blocks.shrink_to_fit();
        Ok(Self { blocks, crc })
    }
}

/// A stream on its way.
struct Stream {
    bytes: Vec<u8>,
    crc: Crc,
    /// What is compressed together before the next part.
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

    /// Digests are known once the tag was made.
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
        assert!(parts.encode(&one, 20).is_none(), "it is too large");
    }

    #[tokio::test]
    async fn what_does_not_shrink_is_not_worth_it() {
        let noise: Vec<u8> = (0..64 << 10).map(|_| rand::random()).collect();
        let document = Joined::of(vec![JoinedPart { bytes: noise.into(), cut: None }]);
        assert!(GzipParts::default().encode(&document, MOST).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_decoded_is_the_content(
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
