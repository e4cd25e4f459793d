//! Compressed variants of a response: which responses may have them, and the validators of the
//! variants.

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue};
use packhouse_wire::conditional::Validators;
use packhouse_wire::content_coding::Coding;

/// Validators of a response's variants: one strong tag for each coding, because the codings produce
/// different bytes.
#[derive(Clone)]
pub(crate) struct CodedVariants {
    gzip: Validators,
    zstd: Validators,
}

impl CodedVariants {
    /// Returns the variants of a response with these headers. `identity` is the validator of the
    /// unencoded content. Returns `None` if the response must not be encoded.
    pub(crate) fn of(headers: &HeaderMap, identity: &Validators) -> Option<Self> {
        let variant = |coding| {
            let etag = tag(&identity.etag, coding)?;
            Some(Validators { etag, modified: identity.modified })
        };
        if !is_document(headers) {
            return None;
        }
        Some(Self { gzip: variant(Coding::Gzip)?, zstd: variant(Coding::Zstd)? })
    }

    /// Returns the validators of one variant, or `None` for the unencoded content.
    pub(crate) fn validators(&self, coding: Coding) -> Option<&Validators> {
        match coding {
            Coding::Identity => None,
            Coding::Gzip => Some(&self.gzip),
            Coding::Zstd => Some(&self.zstd),
        }
    }
}

/// Returns the tag of a variant: the tag of the unencoded content with the coding's name appended.
fn tag(identity: &HeaderValue, coding: Coding) -> Option<HeaderValue> {
    let text = identity.to_str().ok()?.strip_suffix('"')?;
    HeaderValue::from_str(&format!("{text}-{}\"", coding.name())).ok()
}

/// Adds `Accept-Encoding` to `Vary`, unless `Vary` already contains it or `*`.
pub(crate) fn vary_by_coding(headers: &mut HeaderMap) {
    let named = match headers.get(VARY).and_then(|value| value.to_str().ok()) {
        None | Some("") => "Accept-Encoding".to_owned(),
        Some(names) if names.split(',').any(|name| is_coding_or_all(name.trim())) => return,
        Some(names) => format!("{names}, Accept-Encoding"),
    };
    if let Ok(value) = HeaderValue::from_str(&named) {
        headers.insert(VARY, value);
    }
}

fn is_coding_or_all(name: &str) -> bool {
    name == "*" || name.eq_ignore_ascii_case("accept-encoding")
}

/// Reports whether the response is a text document and no header requires its bytes to stay
/// unchanged.
pub(crate) fn is_document(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| is_text(kind.as_bytes()))
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.get_all(CACHE_CONTROL).iter().any(|value| says_no_transform(value.as_bytes()))
        && !headers.keys().any(is_digest)
}

/// Reports whether this is a text type (RFC 9110, section 8.3.1): `text/*`, JSON, XML, or a type
/// that is built on JSON, XML or HTML.
fn is_text(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    if essence.starts_with(b"text/") {
        return true;
    }
    let Some(subtype) = essence.strip_prefix(b"application/") else { return false };
    let structure = subtype.rsplit(|byte| *byte == b'+').next().unwrap_or_default();
    matches!(structure, b"json" | b"xml") || subtype.ends_with(b"+html")
}

fn says_no_transform(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

/// Reports whether the header contains a digest of the bytes on the wire. Clients compare the
/// digest and the length before they decode the content.
fn is_digest(name: &HeaderName) -> bool {
    name.as_str() == "content-md5" || name.as_str().rsplit('-').next() == Some("digest")
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: (&str, &str) = ("content-type", "application/json");

    fn variants(fields: &[(&'static str, &'static str)]) -> Option<CodedVariants> {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let identity = Validators { etag: HeaderValue::from_static("\"a\""), modified: Some(7) };
        CodedVariants::of(&fields.iter().map(field).collect(), &identity)
    }

    #[test]
    fn each_variant_has_a_tag_of_its_own() {
        let variants = variants(&[JSON]).unwrap();
        for (coding, tag) in [(Coding::Gzip, "\"a-gzip\""), (Coding::Zstd, "\"a-zstd\"")] {
            let validators = variants.validators(coding).unwrap();
            assert_eq!((&validators.etag, validators.modified), (&HeaderValue::from_static(tag), Some(7)));
        }
        assert!(variants.validators(Coding::Identity).is_none());
    }

    #[test]
    fn documents_have_variants() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/vnd.any.install-v1+json", true),
            ("application/vnd.any.simple.v1+html", true),
            ("application/xml", true),
            ("application/xhtml+xml", true),
            ("text/html", true),
            ("text/plain;charset=utf-8", true),
            ("image/svg+xml", false),
            ("image/png", false),
            ("application/octet-stream", false),
            ("application/java-archive", false),
            ("application/gzip", false),
            ("application/vnd.any.tar+gzip", false),
            ("application/html", false),
            ("json", false),
            ("", false),
        ] {
            assert_eq!(variants(&[("content-type", kind)]).is_some(), expected, "{kind}");
        }
        assert!(variants(&[]).is_none());
    }

    #[test]
    fn contents_that_must_not_be_transformed_have_no_variants() {
        for more in [
            ("content-encoding", "br"),
            ("cache-control", "max-age=60, No-Transform"),
            ("any-content-digest", "sha256:00"),
            ("repr-digest", "sha-256=:AA=:"),
            ("digest", "sha-256=AA="),
            ("content-md5", "AA="),
        ] {
            assert!(variants(&[JSON, more]).is_none(), "{more:?}");
        }
        assert!(variants(&[JSON, ("x-checksum-sha1", "00"), ("cache-control", "no-cache")]).is_some());
    }

    #[test]
    fn accept_encoding_is_added_to_vary() {
        for (before, after) in [
            (None, "Accept-Encoding"),
            (Some("Accept, Authorization"), "Accept, Authorization, Accept-Encoding"),
            (Some("Accept, accept-encoding"), "Accept, accept-encoding"),
            (Some("*"), "*"),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(before.map(|names| (VARY, HeaderValue::from_static(names))));
            vary_by_coding(&mut headers);
            assert_eq!(headers[VARY], after);
        }
    }
}
