//! The body of a response: bytes in memory, a stored file in pieces, or a file that is still
//! arriving from an upstream.

use std::ops::Range;

use bytes::Bytes;
use packhouse_runtime::Content;
use packhouse_store::{Arriving, StoreError};
use packhouse_wire::body::Body;

use crate::response_request::{InMemory, NoMemory, ResponseRequest, SMALL, piece};

/// Returns a body with this part of the content. Reads the first bytes of a stored file at once, so
/// that a read error can still change the response's head. A file that is still arriving is always
/// sent whole.
pub(crate) async fn body(
    content: &Content,
    part: Range<u64>,
    request: ResponseRequest<'_>,
) -> Result<Body, StoreError> {
    if request.head {
        return Ok(Body::empty());
    }
    Ok(match content {
        Content::None => Body::empty(),
        Content::Arriving(arriving) => arriving_body(arriving, request),
        Content::Inline(bytes) => {
            let content = InMemory { address: bytes.as_ptr().addr(), bytes: bytes.len() };
            let bytes = cut(bytes, part);
            match request.hold(bytes.len(), content) {
                Ok(hold) => Body::full(bytes).holding(hold),
                Err(NoMemory) => spilled(vec![bytes], request).await?,
            }
        }
        Content::Joined(joined) => {
            let bytes = usize::try_from(joined.size()).unwrap_or(usize::MAX);
            let content = InMemory { address: joined.parts().as_ptr().addr(), bytes };
            let mut parts = joined.range(part);
            let length = parts.iter().map(Bytes::len).sum();
            if length <= SMALL {
                parts = parts.into_iter().map(|part| small(part, bytes)).collect();
            }
            match request.hold(length, content) {
                Ok(hold) => Body::parts(parts).holding(hold),
                Err(NoMemory) => spilled(parts, request).await?,
            }
        }
        Content::Blob(blob) => {
            let length = part.end - part.start;
            let hold = request.hold_pieces(length);
            let bytes = blob.stream_in(part, piece(hold.as_ref())).with_first_chunk().await?;
            Body::stream(bytes, length, request.request_id).holding(hold)
        }
    })
}

/// Moves bytes from memory to a file. The response is then sent from this file.
async fn spilled(parts: Vec<Bytes>, request: ResponseRequest<'_>) -> Result<Body, StoreError> {
    let length = parts.iter().map(|part| part.len() as u64).sum();
    let hold = request.hold_pieces(length);
    let bytes = request.spill.write(parts, piece(hold.as_ref()), request.connection).await?;
    Ok(Body::stream(bytes, length, request.request_id).holding(hold))
}

/// Returns a body of bytes that are still arriving, with the length that the upstream declared, if
/// any.
fn arriving_body(arriving: &Arriving, request: ResponseRequest<'_>) -> Body {
    let hold = request.hold_pieces(arriving.declared().unwrap_or(u64::MAX));
    let bytes = arriving.stream_in(piece(hold.as_ref()));
    Body::arriving(bytes, arriving.declared(), request.request_id).holding(hold)
}

fn cut(bytes: &Bytes, part: Range<u64>) -> Bytes {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    small(bytes.slice(at(part.start)..at(part.end)), bytes.len())
}

/// Copies a small part of a large content. Only the part is counted as held memory, so it must not
/// keep the rest of the content in memory.
fn small(part: Bytes, whole: usize) -> Bytes {
    if part.len() <= SMALL && whole > SMALL { Bytes::copy_from_slice(&part) } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_does_not_keep_the_rest() {
        let whole = Bytes::from(vec![7; 10 * SMALL]);
        let lies_within = |part: &Bytes| whole.as_ptr_range().contains(&part.as_ptr());
        for length in [1, SMALL] {
            let part = cut(&whole, 5..5 + length as u64);
            assert_eq!(part.len(), length);
            assert!(!lies_within(&part), "{length}");
        }
        assert!(lies_within(&cut(&whole, 0..2 * SMALL as u64)));
    }
}
