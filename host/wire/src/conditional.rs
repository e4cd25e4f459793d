//! Conditional requests of RFC 9110 §13, for GET and HEAD: whether the client has what it asks for already.

use http::header::{
    HeaderMap, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};

/// What a content is known by.
#[derive(Clone, Debug)]
pub struct Validators {
    /// Strong, with its quotes.
    pub etag: HeaderValue,
    /// Seconds since 1970, where it is known.
    pub modified: Option<u64>,
}

/// What is to be answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The content.
    Send,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Judges in the order of RFC 9110 §13.2.2.
pub fn judge(headers: &HeaderMap, validators: &Validators) -> Outcome {
    if headers.contains_key(IF_MATCH) {
        if !names(headers, &IF_MATCH, &validators.etag, false) {
            return Outcome::Failed;
        }
    } else if seconds(headers, &IF_UNMODIFIED_SINCE)
        .zip(validators.modified)
        .is_some_and(|(since, at)| at > since)
    {
        return Outcome::Failed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        return if names(headers, &IF_NONE_MATCH, &validators.etag, true) {
            Outcome::NotModified
        } else {
            Outcome::Send
        };
    }
    match seconds(headers, &IF_MODIFIED_SINCE).zip(validators.modified) {
        Some((since, at)) if at <= since => Outcome::NotModified,
        _ => Outcome::Send,
    }
}

/// Whether a `Range` counts: there is no `If-Range`, or it names exactly this content.
pub fn range_counts(headers: &HeaderMap, validators: &Validators) -> bool {
    match headers.get(IF_RANGE) {
        None => true,
        Some(tag) if tag.as_bytes().starts_with(b"\"") => tag == validators.etag,
        Some(_) => seconds(headers, &IF_RANGE).is_some_and(|since| validators.modified == Some(since)),
    }
}

/// Whether a list of tags names this one. A weak tag names it where `weak` comparison is asked for.
fn names(headers: &HeaderMap, field: &http::HeaderName, etag: &HeaderValue, weak: bool) -> bool {
    let etag = etag.as_bytes();
    headers.get_all(field).iter().any(|line| {
        // A comma within a tag splits it in two, neither of which is one of ours.
        line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(|tag| {
            tag == b"*" || tag == etag || (weak && tag.strip_prefix(b"W/").is_some_and(|tag| tag == etag))
        })
    })
}

fn seconds(headers: &HeaderMap, field: &http::HeaderName) -> Option<u64> {
    let time = httpdate::parse_http_date(headers.get(field)?.to_str().ok()?).ok()?;
    time.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    fn validators() -> Validators {
        Validators { etag: HeaderValue::from_static("\"a\""), modified: Some(784_111_777) }
    }

    fn judged(fields: &[(http::HeaderName, &'static str)]) -> Outcome {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        judge(&headers, &validators())
    }

    #[test]
    fn tags_and_times_are_judged_in_order() {
        for (fields, expected) in [
            (vec![], Outcome::Send),
            (vec![(IF_NONE_MATCH, "\"a\"")], Outcome::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\", W/\"a\"")], Outcome::NotModified),
            (vec![(IF_NONE_MATCH, "*")], Outcome::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, AT)], Outcome::Send),
            (vec![(IF_MODIFIED_SINCE, AT)], Outcome::NotModified),
            (vec![(IF_MODIFIED_SINCE, BEFORE)], Outcome::Send),
            (vec![(IF_MODIFIED_SINCE, "yesterday")], Outcome::Send),
            (vec![(IF_MATCH, "\"a\"")], Outcome::Send),
            (vec![(IF_MATCH, "W/\"a\"")], Outcome::Failed),
            (vec![(IF_MATCH, "\"b\"")], Outcome::Failed),
            (vec![(IF_UNMODIFIED_SINCE, BEFORE)], Outcome::Failed),
            (vec![(IF_UNMODIFIED_SINCE, AT)], Outcome::Send),
        ] {
            assert_eq!(judged(&fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_range_counts_for_the_same_content_alone() {
        for (value, expected) in
            [("\"a\"", true), ("\"b\"", false), ("W/\"a\"", false), (AT, true), (BEFORE, false)]
        {
            let headers = HeaderMap::from_iter([(IF_RANGE, HeaderValue::from_static(value))]);
            assert_eq!(range_counts(&headers, &validators()), expected, "{value}");
        }
        assert!(range_counts(&HeaderMap::new(), &validators()));
    }
}
