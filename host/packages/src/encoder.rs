//! Compresses a content, as a whole or in pieces, into no more memory than it is worth.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_wire::content_coding::Coding;

/// How much time is spent on a smaller result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effort {
    /// About 100 MB a second, for what is made while a request waits on the same thread.
    Low,
    /// About 40 MB a second, for what is made once and kept.
    High,
}

impl Effort {
    fn gzip(self) -> Compression {
        match self {
            Self::Low => Compression::new(4),
            Self::High => Compression::new(6),
        }
    }

    /// Levels whose window is at most 8 MiB, which RFC 9659 asks of the content coding.
    fn zstd(self) -> i32 {
        match self {
            Self::Low => 3,
            Self::High => 7,
        }
    }
}

/// An encoder that takes a content in pieces.
pub(crate) struct Encoder(Inner);

enum Inner {
    Gzip(GzEncoder<Bounded>),
    Zstd(zstd::stream::write::Encoder<'static, Bounded>),
}

impl Encoder {
    /// For a result of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// There is no memory for it, or the coding is `identity`, which nothing has to be done for.
    pub(crate) fn new(coding: Coding, effort: Effort, most: usize) -> io::Result<Self> {
        let bounded = Bounded { bytes: Vec::new(), most };
        Ok(Self(match coding {
            Coding::Identity => return Err(io::ErrorKind::Unsupported.into()),
            Coding::Gzip => Inner::Gzip(GzEncoder::new(bounded, effort.gzip())),
            Coding::Zstd => Inner::Zstd(zstd::stream::write::Encoder::new(bounded, effort.zstd())?),
        }))
    }

    /// Takes the next piece.
    ///
    /// # Errors
    ///
    /// The result is larger than it may be.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Inner::Gzip(encoder) => encoder.write_all(piece),
            Inner::Zstd(encoder) => encoder.write_all(piece),
        }
    }

    /// The result.
    ///
    /// # Errors
    ///
    /// It is larger than it may be.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        let bounded = match self.0 {
            Inner::Gzip(encoder) => encoder.finish()?,
            Inner::Zstd(encoder) => encoder.finish()?,
        };
        // It is kept: what was reserved and not used would be kept with it.
        Ok(Bytes::from(bounded.bytes.into_boxed_slice()))
    }
}

/// A content in memory, in its parts, compressed; none where that saves less than an eighth.
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

/// Bytes in memory up to a bound.
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

    /// The content that these bytes stand for.
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
    fn what_does_not_shrink_is_not_worth_it() {
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
        fn what_is_decoded_is_the_content(
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
