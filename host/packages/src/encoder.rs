//! Compresses content, whole or in pieces, and limits the size of the result.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_wire::content_coding::Coding;

/// Time that the encoder spends to make the result smaller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effort {
    /// About 100 MB/s, for content that is compressed on the thread of the waiting request.
    Low,
    /// About 40 MB/s, for content that is compressed once and cached.
    High,
}

impl Effort {
    fn gzip(self) -> Compression {
        match self {
            Self::Low => Compression::new(4),
            Self::High => Compression::new(6),
        }
    }

    /// Returns the level. Both levels have a window of at most 8 MiB, as RFC 9659 requires for this
    /// content coding.
    fn zstd(self) -> i32 {
        match self {
            Self::Low => 3,
            Self::High => 7,
        }
    }
}

/// An encoder that receives content in pieces.
pub(crate) struct Encoder(AnyEncoder);

enum AnyEncoder {
    Gzip(GzEncoder<Bounded>),
    Zstd(zstd::stream::write::Encoder<'static, Bounded>),
}

impl Encoder {
    /// Creates an encoder for a result of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// Fails if memory is short, and for the coding `identity`, which needs no encoder.
    pub(crate) fn new(coding: Coding, effort: Effort, most: usize) -> io::Result<Self> {
        let bounded = Bounded { bytes: Vec::new(), most };
        Ok(Self(match coding {
            Coding::Identity => return Err(io::ErrorKind::Unsupported.into()),
            Coding::Gzip => AnyEncoder::Gzip(GzEncoder::new(bounded, effort.gzip())),
            Coding::Zstd => AnyEncoder::Zstd(zstd::stream::write::Encoder::new(bounded, effort.zstd())?),
        }))
    }

    /// Encodes the next piece of the content.
    ///
    /// # Errors
    ///
    /// Fails if the result exceeds its bound.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            AnyEncoder::Gzip(encoder) => encoder.write_all(piece),
            AnyEncoder::Zstd(encoder) => encoder.write_all(piece),
        }
    }

    /// Finishes the stream and returns the result.
    ///
    /// # Errors
    ///
    /// Fails if the result exceeds its bound.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        let bounded = match self.0 {
            AnyEncoder::Gzip(encoder) => encoder.finish()?,
            AnyEncoder::Zstd(encoder) => encoder.finish()?,
        };
        // The result is cached, so free the unused capacity.
        Ok(Bytes::from(bounded.bytes.into_boxed_slice()))
    }
}

/// Compresses content that consists of parts in memory. Returns `None` if that saves less than an
/// eighth.
pub(crate) fn encode<'a>(
    parts: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
    coding: Coding,
    effort: Effort,
) -> Option<Bytes> {
    let parts = parts.into_iter();
    let size: usize = parts.clone().map(<[u8]>::len).sum();
    let mut encoder = Encoder::new(coding, effort, size - size / 8).ok()?;
    for part in parts {
        encoder.write(part).ok()?;
    }
    encoder.finish().ok()
}

struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.most - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read as _;

    const CODINGS: [Coding; 2] = [Coding::Gzip, Coding::Zstd];

    pub(crate) fn decoded(bytes: &[u8], coding: Coding) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            Coding::Identity => content.extend_from_slice(bytes),
            Coding::Gzip => {
                flate2::read::GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
            }
            Coding::Zstd => content = zstd::stream::decode_all(bytes).unwrap(),
        }
        content
    }

    #[test]
    fn incompressible_content_is_not_encoded() {
        let noise: Vec<u8> = (0..8192).map(|_| rand::random()).collect();
        for coding in CODINGS {
            assert_eq!(encode([&*noise], coding, Effort::High), None, "{coding:?}");
            let encoded = encode([&[b'a'; 8192][..]], coding, Effort::Low).unwrap();
            assert!(encoded.len() < 200, "{coding:?}: {}", encoded.len());
        }
        assert_eq!(encode([&[b'a'; 8192][..]], Coding::Identity, Effort::Low), None);
    }

    #[test]
    fn a_result_is_bounded() {
        let noise: Vec<u8> = (0..1 << 20).map(|_| rand::random()).collect();
        for coding in CODINGS {
            let mut encoder = Encoder::new(coding, Effort::Low, 1000).unwrap();
            assert!(noise.chunks(4096).any(|piece| encoder.write(piece).is_err()), "{coding:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn decoding_restores_the_content(
            words in prop::collection::vec("[a-f]{1,8}", 200..2000),
            cut in 1_usize..4096,
        ) {
            let content = words.join(" ").into_bytes();
            for coding in CODINGS {
                for effort in [Effort::Low, Effort::High] {
                    let whole = encode([&*content], coding, effort).unwrap();
                    prop_assert_eq!(&decoded(&whole, coding), &content);
                    let parts = encode(content.chunks(cut), coding, effort).unwrap();
                    prop_assert_eq!(&decoded(&parts, coding), &content);
                    let mut encoder = Encoder::new(coding, effort, content.len()).unwrap();
                    content.chunks(cut).for_each(|piece| encoder.write(piece).unwrap());
                    prop_assert_eq!(&decoded(&encoder.finish().unwrap(), coding), &content);
                }
            }
        }
    }
}
