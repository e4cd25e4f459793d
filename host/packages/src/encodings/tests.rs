//! Tests of the compression cache: which contents it compresses, when, how often and within which
//! bounds.

use super::*;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};
use packhouse_runtime::{Answer, Cut, JoinedPart, Reads};

use crate::encoder::tests::decoded;
use crate::prepared_response::prepare;

const LARGE: usize = 200 * 1024;

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b"abcdefgh"[(at * at / 7) % 8]).collect()
}

fn answer(bytes: Vec<u8>) -> Answer {
    Answer {
        status: 200,
        headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        content: Content::Inline(Bytes::from(bytes)),
        modified: None,
        cacheable: true,
        looked: Default::default(),
        committed: false,
        newest_found: Some(0),
        confidential: false,
        reads: Reads::default(),
        until: None,
        cache_uses: Vec::new(),
    }
}

async fn offered(encodings: &Encodings, answer: Answer) -> PreparedResponse {
    encodings.offer(prepare(answer, true).await.unwrap())
}

async fn cached(encodings: &Encodings, bytes: Vec<u8>) -> PreparedResponse {
    PreparedResponse { cached: true, ..offered(encodings, answer(bytes)).await }
}

#[tokio::test]
async fn documents_of_some_size_have_variants_and_vary_by_them() {
    let encodings = Encodings::new(true);
    let found = offered(&encodings, answer(text(1024))).await;
    assert!(found.variants.is_some());
    assert_eq!(found.headers[VARY], "Accept, Authorization, Accept-Encoding");
    let no_transform = (CACHE_CONTROL, HeaderValue::from_static("no-transform"));
    let headers = [answer(text(0)).headers, vec![no_transform]].concat();
    for other in [
        answer(text(1023)),
        Answer { status: 201, ..answer(text(2000)) },
        Answer { confidential: true, ..answer(text(2000)) },
        Answer { content: Content::None, ..answer(text(0)) },
        Answer { headers, ..answer(text(2000)) },
    ] {
        let found = offered(&encodings, other).await;
        assert!(found.variants.is_none());
        let vary: Vec<&[u8]> = found.headers.get_all(VARY).iter().map(HeaderValue::as_bytes).collect();
        // A response without content may stand for a document that has variants.
        assert_eq!(vary.concat().ends_with(b"Accept-Encoding"), found.stands_for_variants);
    }
    let disabled = offered(&Encodings::new(false), answer(text(2000))).await;
    assert!(disabled.variants.is_none());
    assert_eq!(disabled.headers[VARY], "Accept, Authorization");
}

#[tokio::test]
async fn equal_contents_are_compressed_once() {
    let encodings = Encodings::new(true);
    for bytes in [text(2000), text(LARGE)] {
        let one = cached(&encodings, bytes.clone()).await;
        let other = cached(&encodings, bytes.clone()).await;
        for coding in [Coding::Gzip, Coding::Zstd] {
            let all =
                futures::future::join_all([&one, &other, &one].map(|one| encodings.of(one, coding))).await;
            let made: Vec<Bytes> = all.into_iter().map(Option::unwrap).collect();
            assert_eq!(decoded(&made[0], coding), bytes);
            // All results share one allocation, so the content was compressed once.
            assert!(made.iter().all(|each| each.as_ptr() == made[0].as_ptr()));
        }
    }
    assert_eq!(encodings.made.len(), 4);
}

#[tokio::test]
async fn a_document_in_parts_is_compressed_as_one_content() {
    let encodings = Encodings::new(true);
    let of = Blob::from_bytes(text(LARGE).into());
    let remembered = JoinedPart { bytes: text(LARGE).into(), cut: Some(Cut { of, start: 0 }) };
    let own = |bytes: &'static [u8]| JoinedPart { bytes: bytes.into(), cut: None };
    let joined = Joined::of(vec![own(b"["), remembered, own(b"]")]);
    let answer = Answer { content: Content::Joined(joined.clone()), ..answer(Vec::new()) };
    let document = PreparedResponse { cached: true, ..offered(&encodings, answer).await };
    for coding in [Coding::Gzip, Coding::Zstd] {
        let encoded = encodings.of(&document, coding).await.unwrap();
        assert_eq!(decoded(&encoded, coding), joined.concat());
    }
}

#[tokio::test]
async fn large_uncached_content_is_sent_compressed_only_if_it_was_compressed_before() {
    let encodings = Encodings::new(true);
    let passing = offered(&encodings, answer(text(LARGE))).await;
    assert!(encodings.of(&passing, Coding::Gzip).await.is_none());
    let small = offered(&encodings, answer(text(2000))).await;
    assert!(encodings.of(&small, Coding::Gzip).await.is_some());
    let cached = cached(&encodings, text(LARGE)).await;
    assert!(encodings.of(&cached, Coding::Gzip).await.is_some());
    assert!(encodings.of(&passing, Coding::Gzip).await.is_some());
}

#[tokio::test]
async fn a_content_is_sent_as_it_is_while_others_are_compressed_and_compressed_later() {
    let encodings = Encodings::new(true);
    let document = cached(&encodings, text(LARGE)).await;
    let busy = encodings.workers.try_acquire_many(u32::try_from(MAX_CONCURRENT).unwrap()).unwrap();
    assert!(encodings.of(&document, Coding::Gzip).await.is_none());
    drop(busy);
    assert!(encodings.of(&document, Coding::Gzip).await.is_some());
}

#[tokio::test]
async fn incompressible_content_is_tried_once() {
    let encodings = Encodings::new(true);
    let noise = cached(&encodings, (0..LARGE).map(|_| rand::random()).collect()).await;
    assert!(encodings.of(&noise, Coding::Zstd).await.is_none());
    let _busy = encodings.workers.try_acquire_many(u32::try_from(MAX_CONCURRENT).unwrap()).unwrap();
    assert_eq!(encodings.made.len(), 1, "the failed attempt is cached");
    assert!(encodings.of(&noise, Coding::Zstd).await.is_none());
}

#[tokio::test]
async fn memory_is_bounded() {
    let encodings = Encodings::within(256 * 1024, true);
    for number in 0..200_usize {
        let content =
            format!("{number}{}", hex::encode((0..20_000).map(|_| rand::random()).collect::<Vec<u8>>()));
        let document = cached(&encodings, content.into_bytes()).await;
        assert!(encodings.of(&document, Coding::Gzip).await.is_some());
    }
    assert!(encodings.made.weight() <= 256 * 1024, "{}", encodings.made.weight());
    assert!(encodings.made.len() > 2);
}

#[test]
fn the_largest_has_room_in_its_share() {
    assert!(Encodings::new(true).made.shard_capacity() > ENCODED_BYTES as u64 + ENTRY_BYTES);
}
