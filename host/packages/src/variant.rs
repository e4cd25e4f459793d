//! Selects the variant of a response for a request, or finds that the client already has a variant.

use http::HeaderMap;
use http::header::RANGE;
use packhouse_wire::conditional::{PreconditionResult, Validators, judge};
use packhouse_wire::content_coding::{Coding, accepted};

use crate::prepared_response::PreparedResponse;

/// Result of a request's conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selected<'a> {
    /// Send the content in this coding.
    Send(Coding),
    /// Send 304 for the variant with these validators.
    NotModified(&'a Validators),
    /// Send 412, because a precondition of the request failed.
    Failed,
}

/// Evaluates the request's conditions for each accepted variant, the preferred one first. A client
/// may have the tag of any variant. It may have accepted another coding before, or got the
/// unencoded content while a variant was being compressed. Ranges refer to the unencoded content.
pub(crate) fn select<'a>(
    response: &'a PreparedResponse,
    identity: &'a Validators,
    headers: &HeaderMap,
) -> Selected<'a> {
    let Some(variants) = response.variants.as_ref().filter(|_| !headers.contains_key(RANGE)) else {
        return match judge(headers, identity) {
            PreconditionResult::Send => Selected::Send(Coding::Identity),
            PreconditionResult::NotModified => Selected::NotModified(identity),
            PreconditionResult::Failed => Selected::Failed,
        };
    };
    let mut selected = Selected::Failed;
    for coding in accepted(headers) {
        let validators = variants.validators(coding).unwrap_or(identity);
        match (judge(headers, validators), selected) {
            (PreconditionResult::NotModified, _) => return Selected::NotModified(validators),
            (PreconditionResult::Send, Selected::Failed) => selected = Selected::Send(coding),
            (PreconditionResult::Send | PreconditionResult::Failed, _) => (),
        }
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderValue;
    use http::header::{
        ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
        IF_UNMODIFIED_SINCE,
    };
    use packhouse_runtime::{Answer, Content, Reads};

    use crate::encodings::Encodings;
    use crate::prepared_response::prepare;

    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    async fn document() -> PreparedResponse {
        let answer = Answer {
            status: 200,
            headers: vec![(CONTENT_TYPE, HeaderValue::from_static("text/plain"))],
            content: Content::Inline(Bytes::from(vec![b'x'; 2000])),
            modified: Some(784_111_777_500),
            cacheable: true,
            looked: Default::default(),
            committed: false,
            newest_found: Some(0),
            confidential: false,
            reads: Reads::default(),
            until: None,
            cache_uses: Vec::new(),
        };
        Encodings::new(true).offer(prepare(answer, true).await.unwrap())
    }

    /// Returns the selection as a word. In header values, `T` stands for the tag of the unencoded
    /// content, and `T-gzip` and `T-zstd` for the tags of its variants.
    fn selected(document: &PreparedResponse, fields: &[(HeaderName, &str)]) -> String {
        let identity = document.validators.as_ref().unwrap();
        let tag = identity.etag.to_str().unwrap().trim_matches('"').to_owned();
        let field = |(name, value): &(HeaderName, &str)| {
            (name.clone(), HeaderValue::from_str(&value.replace("T", &tag)).unwrap())
        };
        // Do not replace the `T` in the `GMT` of dates.
        let dated = |(name, value): &(HeaderName, &str)| match *name {
            IF_MODIFIED_SINCE | IF_UNMODIFIED_SINCE => (name.clone(), HeaderValue::from_str(value).unwrap()),
            _ => field(&(name.clone(), value)),
        };
        let headers: HeaderMap = fields.iter().map(dated).collect();
        match select(document, identity, &headers) {
            Selected::Send(coding) => coding.name().to_owned(),
            Selected::NotModified(validators) => {
                validators.etag.to_str().unwrap().trim_matches('"').replace(&tag, "304 T")
            }
            Selected::Failed => "412".to_owned(),
        }
    }

    #[tokio::test]
    async fn conditions_are_judged_for_each_variant_that_is_accepted() {
        let document = document().await;
        let accepts = |codings: &'static str| (ACCEPT_ENCODING, codings);
        let tagged = |tags: &'static str| (IF_NONE_MATCH, tags);
        for (fields, expected) in [
            (vec![], "identity"),
            (vec![accepts("gzip")], "gzip"),
            (vec![accepts("gzip, zstd")], "zstd"),
            (vec![accepts("gzip;q=0")], "identity"),
            // Ranges refer to the unencoded content.
            (vec![accepts("gzip"), (RANGE, "bytes=0-1")], "identity"),
            (vec![accepts("gzip"), (RANGE, "bytes=0-1"), tagged("\"T\"")], "304 T"),
            (vec![accepts("gzip"), (RANGE, "bytes=0-1"), (IF_MATCH, "\"T-gzip\"")], "412"),
            // The client already has one of the variants.
            (vec![accepts("gzip, zstd"), tagged("\"T-zstd\"")], "304 T-zstd"),
            (vec![accepts("gzip, zstd"), tagged("\"T-gzip\"")], "304 T-gzip"),
            (vec![accepts("gzip, zstd"), tagged("\"T\"")], "304 T"),
            (vec![accepts("gzip, zstd"), tagged("W/\"T-gzip\"")], "304 T-gzip"),
            (vec![accepts("gzip, zstd"), tagged("\"T\", \"T-gzip\", \"T-zstd\"")], "304 T-zstd"),
            (vec![accepts("gzip"), tagged("*")], "304 T-gzip"),
            (vec![accepts("gzip"), tagged("\"other\"")], "gzip"),
            // Without `Accept-Encoding`, all codings are accepted.
            (vec![tagged("\"T-gzip\"")], "304 T-gzip"),
            (vec![tagged("\"T-zstd\"")], "304 T-zstd"),
            // The client does not accept the coding of this variant.
            (vec![accepts("identity"), tagged("\"T-gzip\"")], "identity"),
            (vec![accepts("gzip"), tagged("\"T-zstd\"")], "gzip"),
            // A condition on one variant selects this variant.
            (vec![accepts("gzip, zstd"), (IF_MATCH, "\"T-gzip\"")], "gzip"),
            (vec![accepts("gzip, zstd"), (IF_MATCH, "\"T\"")], "identity"),
            (vec![accepts("gzip, zstd"), (IF_MATCH, "*")], "zstd"),
            (vec![accepts("gzip"), (IF_MATCH, "\"other\"")], "412"),
            (vec![accepts("gzip"), (IF_MATCH, "W/\"T-gzip\"")], "412"),
            // All variants share the modification time.
            (vec![accepts("gzip"), (IF_MODIFIED_SINCE, AT)], "304 T-gzip"),
            (vec![accepts("gzip"), (IF_MODIFIED_SINCE, BEFORE)], "gzip"),
            (vec![accepts("gzip"), (IF_UNMODIFIED_SINCE, BEFORE)], "412"),
        ] {
            assert_eq!(selected(&document, &fields), expected, "{fields:?}");
        }
    }

    #[tokio::test]
    async fn a_response_without_variants_has_one_tag() {
        let document = PreparedResponse { variants: None, ..document().await };
        for (fields, expected) in [
            (vec![(ACCEPT_ENCODING, "gzip")], "identity"),
            (vec![(IF_NONE_MATCH, "\"T-gzip\"")], "identity"),
            (vec![(IF_NONE_MATCH, "\"T\"")], "304 T"),
            (vec![(IF_MATCH, "\"T-gzip\"")], "412"),
        ] {
            assert_eq!(selected(&document, &fields), expected, "{fields:?}");
        }
    }
}
