//! Request bodies that are composed while they are sent.

use std::pin::Pin;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use reqwest::Body;

/// A piece of a body, or the error that ended the body.
pub(crate) type BodyPiece = std::io::Result<Bytes>;

/// A body that consists of a prefix, a stream and a suffix.
pub(crate) fn enclosed(before: Bytes, within: BoxStream<'static, BodyPiece>, after: Bytes) -> Body {
    let ends = |bytes: Bytes| futures::stream::iter([Ok(bytes)]);
    Body::wrap_stream(ends(before).chain(within).chain(ends(after)))
}

/// Encodes a stream as base64. Bytes that do not fill a group of three are carried over to the next
/// piece.
pub(crate) fn base64(within: BoxStream<'static, BodyPiece>) -> BoxStream<'static, BodyPiece> {
    Box::pin(Base64Stream { within, left: Vec::new(), ended: false })
}

/// Length of the base64 encoding of this number of bytes.
pub(crate) fn base64_length(bytes: u64) -> u64 {
    bytes.div_ceil(3) * 4
}

struct Base64Stream {
    within: BoxStream<'static, BodyPiece>,
    left: Vec<u8>,
    ended: bool,
}

impl Stream for Base64Stream {
    type Item = BodyPiece;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<BodyPiece>> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        use std::task::Poll;
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            match std::task::ready!(self.within.poll_next_unpin(context)) {
                Some(Ok(piece)) => {
                    self.left.extend_from_slice(&piece);
                    let whole = self.left.len() / 3 * 3;
                    let rest = self.left.split_off(whole);
                    let full = std::mem::replace(&mut self.left, rest);
                    if !full.is_empty() {
                        return Poll::Ready(Some(Ok(STANDARD.encode(full).into())));
                    }
                }
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.ended = true;
                    let rest = std::mem::take(&mut self.left);
                    return Poll::Ready((!rest.is_empty()).then(|| Ok(STANDARD.encode(rest).into())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_of_any_size_become_the_same_text(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..10)) {
            let whole = pieces.concat();
            let pieces: Vec<BodyPiece> = pieces.into_iter().map(|piece| Ok(piece.into())).collect();
            let encoded = futures::executor::block_on(base64(futures::stream::iter(pieces).boxed()).collect::<Vec<_>>());
            let text: Vec<u8> = encoded.into_iter().flat_map(|piece| piece.unwrap()).collect();
            prop_assert_eq!(text.len() as u64, base64_length(whole.len() as u64));
            prop_assert_eq!(String::from_utf8(text).unwrap(), base64::engine::general_purpose::STANDARD.encode(whole));
        }
    }
}
