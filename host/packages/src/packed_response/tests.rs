//! Tests of packed entries: packing and unpacking returns the same entry, and unsuitable entries
//! are not packed.

use super::*;
use http::header::CONTENT_DISPOSITION;
use packhouse_runtime::{Joined, RequestHead};
use proptest::prelude::*;

use crate::response_cache::tests::{intent, response};
use crate::response_cache::{CacheKey, Cached, ResponseCache};

const CONTENT: &[u8] = b"of a small file";

fn small() -> SmallBlob {
    postcard::from_bytes(&[14]).unwrap()
}

/// Returns a plugin's response with a small file and these additional headers.
async fn file(more: &[(&str, &[u8])]) -> PreparedResponse {
    let prepared = response(200, CONTENT.len()).await;
    let (sha256, modified) = (Sha256([0xab; 32]), Some(1_700_000_000));
    let etag = HeaderValue::from_str(&format!("\"{}\"", hex::encode(sha256.0))).unwrap();
    let mut headers = prepared.headers.clone();
    headers.insert(ETAG, etag.clone());
    headers.insert(LAST_MODIFIED, HeaderValue::from_static("Tue, 14 Nov 2023 22:13:20 GMT"));
    for (name, value) in more {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value).unwrap());
    }
    PreparedResponse {
        headers,
        content: Content::Inline(Bytes::from_static(CONTENT)),
        validators: Some(Validators { etag, modified }),
        cached: true,
        cache_uses: vec![CacheUse { repository: RepositoryId(3), name: Some([7; 32]), stale: false }],
        file: Some(SentFile {
            repository: Some(RepositoryId(3)),
            sha256: Some(sha256),
            small: Some(small()),
        }),
        ..(*prepared).clone()
    }
}

fn entry(intent: Intent, response: PreparedResponse) -> CacheEntry {
    CacheEntry {
        validity: Validity::of_settings(5),
        advisories: 9,
        intent: Arc::new(intent),
        response: Arc::new(response),
    }
}

fn there_and_back(entry: &CacheEntry) -> CacheEntry {
    let unpacked = PackedEntry::of(entry).unwrap().unpack().unwrap();
    assert_eq!(unpacked.small, small());
    unpacked.with(Bytes::from_static(CONTENT))
}

#[tokio::test]
async fn a_small_file_comes_back_as_it_was() {
    let digest = hex::encode([0xab; 32]);
    let response = file(&[
        ("x-sum", digest.as_bytes()),
        ("x-sum", b"00ff"),
        ("x-sum", b"00FF"),
        ("content-disposition", b"attachment; filename=\"\xc3\xa9\""),
    ])
    .await;
    let original = Intent {
        subject: Some("org/example".to_owned()),
        packages: vec!["a".to_owned(), "b".to_owned()],
        for_publish: true,
        looked: Looked::AtHeaders,
        ..intent()
    };
    let was = entry(original, response);
    let is = there_and_back(&was);
    assert_eq!(is.response.headers, was.response.headers);
    assert!(is.response.headers.contains_key(CONTENT_DISPOSITION));
    assert!(matches!(&is.response.content, Content::Inline(bytes) if bytes == CONTENT));
    let of = |entry: &CacheEntry| entry.response.validators.clone().map(|of| (of.etag, of.modified)).unwrap();
    assert_eq!(of(&is), of(&was));
    assert_eq!(is.response.cache_uses, was.response.cache_uses);
    assert_eq!(format!("{:?}", is.response.file), format!("{:?}", was.response.file));
    assert_eq!(format!("{:?}", is.intent), format!("{:?}", was.intent));
    assert_eq!(format!("{:?}", is.validity), format!("{:?}", was.validity));
    assert_eq!((is.response.cached, is.advisories), (true, 9));
    assert!(is.response.variants.is_none());
}

#[tokio::test]
async fn a_document_has_its_variants_again() {
    let response = file(&[("content-type", b"text/xml")]).await;
    let validators = response.validators.clone().unwrap();
    let variants = CodedVariants::of(&response.headers, &validators);
    assert!(variants.is_some());
    let is = there_and_back(&entry(intent(), PreparedResponse { variants, ..response }));
    assert!(is.response.variants.is_some());
}

#[tokio::test]
async fn responses_that_cannot_be_restored_are_not_packed() {
    let file = file(&[]).await;
    let other = |response: PreparedResponse| PackedEntry::of(&entry(intent(), response)).is_none();
    let sent = file.file.unwrap();
    assert!(other(PreparedResponse { file: None, ..file.clone() }));
    assert!(other(PreparedResponse { file: Some(SentFile { small: None, ..sent }), ..file.clone() }));
    assert!(other(PreparedResponse { content: Content::Joined(Joined::of(Vec::new())), ..file.clone() }));
    assert!(other(PreparedResponse { content: Content::None, ..file.clone() }));
    assert!(other(PreparedResponse { status: StatusCode::PARTIAL_CONTENT, ..file.clone() }));
    let tag = Validators { etag: HeaderValue::from_static("\"another\""), modified: None };
    assert!(other(PreparedResponse { validators: Some(tag), ..file.clone() }));
    for intent in [
        Intent { check: true, ..intent() },
        Intent { for_caller: true, ..intent() },
        Intent { limit: Some("large".to_owned()), ..intent() },
        Intent { also_read: vec!["other".to_owned()], ..intent() },
    ] {
        assert!(PackedEntry::of(&entry(intent, file.clone())).is_none());
    }
}

#[tokio::test]
async fn every_second_request_makes_an_entry_worth_caching_whole() {
    let packed = PackedEntry::of(&entry(intent(), file(&[]).await)).unwrap();
    let requested = |_| packed.unpack().unwrap().requested_again;
    assert_eq!([(); 4].map(requested), [false, true, false, true]);
}

#[tokio::test]
async fn a_packed_entry_takes_little_memory() {
    let sums: [(&str, &[u8]); 2] = [("x-md5", &[b'a'; 32]), ("x-sha1", &[b'b'; 40])];
    let packed = PackedEntry::of(&entry(intent(), file(&sums).await)).unwrap();
    assert!(packed.bytes() < 320, "{}", packed.bytes());
}

fn key(number: u32) -> CacheKey {
    let (method, path) = ("GET".to_owned(), [number.to_string()].into());
    let head = RequestHead { method, path, ..RequestHead::default() };
    CacheKey::of(1, RepositoryId(1), &[], &head).unwrap()
}

#[tokio::test]
async fn more_packed_than_whole_entries_fit_within_the_bound() {
    let cache = ResponseCache::new(300 * 1024, 16);
    let file = file(&[]).await;
    (0..2_000).for_each(|number| cache.insert(&key(number), entry(intent(), file.clone())));
    let packed = (0..2_000).filter(|number| matches!(cache.get(&key(*number)), Some(Cached::Packed(_))));
    let packed = packed.count();
    assert!((200..800).contains(&packed), "{packed} in 200 KiB");
}

#[tokio::test]
async fn a_frequently_requested_packed_entry_is_cached_whole_again() {
    let cache = ResponseCache::new(300 * 1024, 16);
    let file = file(&[]).await;
    (0..200).for_each(|number| cache.insert(&key(number), entry(intent(), file.clone())));
    let is_packed = |number: &u32| matches!(cache.get(&key(*number)), Some(Cached::Packed(_)));
    let number = (0..200).find(is_packed).expect("an entry that is only packed");
    let Some(Cached::Packed(packed)) = cache.get(&key(number)) else { unreachable!() };
    let unpacked = Arc::new(packed.unpack().unwrap().with(Bytes::from_static(CONTENT)));
    // The unpacked entry displaces another one, because it is requested as often as they are.
    for _ in 0..8 {
        cache.get(&key(number));
        cache.insert_unpacked(&key(number), &unpacked);
    }
    assert!(matches!(cache.get(&key(number)), Some(Cached::Whole(entry)) if Arc::ptr_eq(&entry, &unpacked)));
}

proptest! {
    #[test]
    fn any_value_survives_packing(bytes in prop::collection::vec(0x20_u8..0x7f, 0..80), hex in "[0-9a-fA-F]{0,64}") {
        let recurring = RecurringValues::of(Sha256([1; 32]), Some(7));
        let tag = format!("\"{}\"", hex::encode([1; 32]));
        for bytes in [bytes.as_slice(), hex.as_bytes(), &recurring.digest, tag.as_bytes()] {
            let value = HeaderValue::from_bytes(bytes).unwrap();
            let unpacked = recurring.unpack(&[(PackedName::Known(0), recurring.pack(&value)), (PackedName::Known(0), PackedValue::Digest)]);
            let both = [value.clone(), HeaderValue::from_bytes(&recurring.digest).unwrap()];
            prop_assert!(unpacked.unwrap().get_all(CONTENT_TYPE).iter().eq(&both));
        }
    }

    #[test]
    fn invalid_bytes_do_not_make_unpacking_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (valid_up_to, requested_odd) = (Arc::default(), Default::default());
        let _ = PackedEntry { valid_up_to, advisories: 0, requested_odd, bytes: bytes.into() }.unpack();
    }
}
