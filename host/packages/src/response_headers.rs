//! Response headers that the host sets for all formats: headers for browsers, caches and
//! validators.

use bytes::BytesMut;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, DATE, ETAG,
    SERVER, SET_COOKIE, VARY, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use packhouse_runtime::{Content, Cut, Joined, JoinedPart};
use packhouse_store::StoreError;
use sha2::{Digest as _, Sha256};

use packhouse_wire::conditional::Validators;

/// Policy for published content: browsers run it nowhere.
const POLICY_PUBLISHED: HeaderValue = HeaderValue::from_static("sandbox");
/// Policy for content that a plugin rendered: it may contain styles and links.
const POLICY_RENDERED: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Values that the host itself sets and that most responses have.
pub(crate) const HOST_VALUES: [&str; 6] =
    ["", "nosniff", "sandbox", "bytes", "Accept, Authorization", "Accept, Authorization, Accept-Encoding"];

/// Copies headers without spare capacity. All values share one allocation. With separate
/// allocations, sending a response that was unused for a while would cost a CPU cache miss for each
/// value.
pub(crate) fn gathered(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    let mut text = BytesMut::with_capacity(headers.values().map(HeaderValue::len).sum());
    headers.values().for_each(|value| text.extend_from_slice(value.as_bytes()));
    let mut text = text.freeze();
    for value in headers.values_mut() {
        let part = text.split_to(value.len());
        let known = HOST_VALUES.iter().find(|known| known.as_bytes() == part);
        let same = known.map(|known| HeaderValue::from_static(known));
        // The conversion cannot fail, because these bytes were a header value before.
        if let Some(same) = same.or_else(|| HeaderValue::from_maybe_shared(part).ok()) {
            *value = same;
        }
    }
    headers
}

/// Returns the plugin's headers without those that only the host may set.
pub(crate) fn plugin_headers(own: Vec<(HeaderName, HeaderValue)>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(own.len() + 10);
    let allowed = own
        .into_iter()
        .filter(|(name, _)| ![DATE, SERVER, SET_COOKIE, WWW_AUTHENTICATE, ETAG].contains(name));
    for (name, value) in allowed {
        headers.append(name, value);
    }
    headers
}

/// Keeps published pages from running scripts on this host's origin, and browsers from showing them
/// as pages.
pub(crate) fn forbid_scripts(headers: &mut HeaderMap, content: &Content) {
    let published = matches!(content, Content::Blob(_) | Content::Arriving(_));
    let policy = if published { POLICY_PUBLISHED } else { POLICY_RENDERED };
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    let page = headers.get(CONTENT_TYPE).is_some_and(|kind| is_page(kind.as_bytes()));
    if published && page && !headers.contains_key(CONTENT_DISPOSITION) {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
}

/// Reports whether browsers render this type with scripts: HTML, SVG or any type based on XML.
fn is_page(content_type: &[u8]) -> bool {
    let kind =
        content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    kind.ends_with(b"html") || kind.ends_with(b"xml") || kind.starts_with(b"image/svg")
}

/// Sets `Cache-Control`. If only some credentials may see the response, shared caches must not
/// store it (`private`).
pub(crate) fn cache_control(
    headers: &mut HeaderMap,
    status: StatusCode,
    private: bool,
) -> Result<(), StoreError> {
    let own = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let value = match (own, private) {
        (None, _) if status != StatusCode::OK => "no-store".to_owned(),
        (None, true) => "private, no-cache".to_owned(),
        (None, false) => "no-cache".to_owned(),
        (Some(own), true) if !own.contains("private") && !own.contains("no-store") => {
            format!("private, {}", own.replace("public, ", ""))
        }
        (Some(own), _) => own.to_owned(),
    };
    let value = HeaderValue::from_str(&value).map_err(|error| StoreError::Invalid(error.to_string()))?;
    headers.insert(CACHE_CONTROL, value);
    Ok(())
}

/// Sets `Vary` to the plugin's names, and to the two headers that may change the answer of any
/// format.
pub(crate) fn vary(headers: &mut HeaderMap) -> Result<(), StoreError> {
    let mut names = "Accept, Authorization".to_owned();
    for line in headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok()) {
        for name in line.split(',').map(str::trim) {
            if !["", "accept", "authorization"].contains(&name.to_ascii_lowercase().as_str()) {
                names = format!("{names}, {name}");
            }
        }
    }
    let value = HeaderValue::from_str(&names).map_err(|error| StoreError::Invalid(error.to_string()))?;
    headers.insert(VARY, value);
    Ok(())
}

/// Returns the validators of a response with status 200, based on a digest of its content. Returns
/// `None` without content, and for content that is still arriving.
pub(crate) async fn validators(
    headers: &HeaderMap,
    content: &Content,
    modified: Option<u64>,
) -> Result<Option<Validators>, StoreError> {
    let tag = match content {
        // Arriving content does not have a digest yet.
        Content::None | Content::Arriving(_) => return Ok(None),
        Content::Inline(bytes) => representation(headers, &[Sha256::digest(bytes).as_slice()]),
        Content::Joined(joined) => representation(headers, &[digest_of(joined).await?.as_slice(), JOINED]),
        Content::Blob(blob) => blob.sha256().await?.to_string(),
    };
    let etag = HeaderValue::from_str(&format!("\"{tag}\""))
        .map_err(|error| StoreError::Invalid(error.to_string()))?;
    Ok(Some(Validators { etag, modified: modified.map(|ms| ms / 1000) }))
}

/// Marker that distinguishes digests of joined parts from digests of bytes.
const JOINED: &[u8] = b"joined";

/// Computes the digest of a document from its parts, so that a change costs only as much as the
/// changed parts. A part that was cut from a cached piece enters with the piece's digest and the
/// part's offset. Other parts enter with their bytes.
///
/// Documents with equal digests have equal bytes. Equal bytes in different parts have different
/// digests, but then clients only download the document again. The parts depend only on the
/// document's content.
async fn digest_of(joined: &Joined) -> Result<Vec<u8>, StoreError> {
    let mut hash = Sha256::new();
    for JoinedPart { bytes, cut } in joined.parts() {
        let length = (bytes.len() as u64).to_be_bytes();
        match cut {
            Some(Cut { of, start }) => {
                hash.update([1]);
                hash.update(of.sha256().await?.0);
                hash.update(start.to_be_bytes());
                hash.update(length);
            }
            None => {
                hash.update([0]);
                hash.update(length);
                hash.update(bytes);
            }
        }
    }
    Ok(hash.finalize().to_vec())
}

/// Returns the tag of a rendered representation. The tag is unique to the bytes, the type and the
/// coding. A stored file has only one representation, so its digest is its tag.
fn representation(headers: &HeaderMap, digest: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for name in [CONTENT_TYPE, CONTENT_ENCODING] {
        hash.update(headers.get(name).map_or(&b""[..], HeaderValue::as_bytes));
        hash.update([0]);
    }
    digest.iter().for_each(|part| hash.update(part));
    hex::encode(hash.finalize().get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gathered_headers_are_the_same(
            fields in prop::collection::vec(("[a-c]{1,2}", "[ -~]{0,40}"), 0..20), known in 0..HOST_VALUES.len()
        ) {
            let own = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let host = (VARY, HeaderValue::from_static(HOST_VALUES[known]));
            let headers = plugin_headers(own.chain([host]).collect());
            prop_assert_eq!(gathered(&headers), headers);
        }
    }

    #[test]
    fn a_rendered_page_cannot_be_framed() {
        let mut headers = HeaderMap::new();
        forbid_scripts(&mut headers, &Content::Inline(bytes::Bytes::new()));
        let policy = headers.get(CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
        assert!(policy.split("; ").any(|rule| rule == "frame-ancestors 'none'"), "{policy}");
    }

    #[test]
    fn pages_are_distinguished_from_files() {
        for kind in [
            "text/html; charset=utf-8",
            "image/svg+xml",
            "application/xml",
            "TEXT/XML",
            "application/xhtml+xml",
        ] {
            assert!(is_page(kind.as_bytes()), "{kind}");
        }
        for kind in ["application/java-archive", "text/plain", "application/json", "image/png"] {
            assert!(!is_page(kind.as_bytes()), "{kind}");
        }
    }
}
