//! Chooses the representation of an index (PEP 691): from `?format=`, or from the weights in
//! `Accept`.

use packhouse_sdk::{Accept, Failure, Request};

/// A representation of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexFormat {
    /// `text/html`, for browsers and old clients.
    Html,
    /// HTML with its own media type.
    HtmlV1,
    Json,
}

/// Media types that a client may request, and the representation for each. If several types have
/// the same weight, the plugin takes the first of them in this list.
const OFFERED: [(&str, IndexFormat); 5] = [
    ("text/html", IndexFormat::Html),
    ("application/vnd.pypi.simple.v1+html", IndexFormat::HtmlV1),
    ("application/vnd.pypi.simple.v1+json", IndexFormat::Json),
    ("application/vnd.pypi.simple.latest+html", IndexFormat::HtmlV1),
    ("application/vnd.pypi.simple.latest+json", IndexFormat::Json),
];

impl IndexFormat {
    /// The `Content-Type` of the response.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::HtmlV1 => "application/vnd.pypi.simple.v1+html",
            Self::Json => "application/vnd.pypi.simple.v1+json",
        }
    }

    /// Returns the representation that a request prefers.
    ///
    /// # Errors
    /// 406 if the request accepts no representation.
    pub(crate) fn of(request: &Request) -> Result<Self, Failure> {
        let accepted = request.query("format").or(request.header("accept")).unwrap_or("*/*");
        choose(accepted).ok_or_else(|| {
            let offered: Vec<&str> = OFFERED.iter().take(3).map(|(name, _)| *name).collect();
            let text = format!(
                "The index is available as {}, but the request accepts none of them",
                offered.join(", ")
            );
            Failure::new(406, "not_acceptable", text)
        })
    }
}

fn choose(accept: &str) -> Option<IndexFormat> {
    let chosen = Accept::parse(accept).choose(OFFERED.iter().map(|(name, _)| *name))?;
    OFFERED.iter().find(|(name, _)| *name == chosen).map(|(_, format)| *format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers_of_clients_are_understood() {
        let pip = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";
        for (accept, expected) in [
            (pip, Some(IndexFormat::Json)),
            ("*/*", Some(IndexFormat::Html)),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Some(IndexFormat::Html)),
            ("text/*", Some(IndexFormat::Html)),
            ("application/*", Some(IndexFormat::HtmlV1)),
            ("application/vnd.pypi.simple.latest+json", Some(IndexFormat::Json)),
            ("application/vnd.pypi.simple.latest+html", Some(IndexFormat::HtmlV1)),
            ("text/html;q=0, */*", Some(IndexFormat::HtmlV1)),
            ("TEXT/HTML", Some(IndexFormat::Html)),
            ("application/vnd.pypi.simple.v2+json", None),
            ("application/json", None),
            ("text/html;q=0", None),
            ("text/html;q=x", None),
            ("application/vnd.pypi.simple.v2+json, text/html;q=0.01", Some(IndexFormat::Html)),
        ] {
            assert_eq!(choose(accept), expected, "{accept}");
        }
    }
}
