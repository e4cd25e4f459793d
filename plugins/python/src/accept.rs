//! Which representation of an index a client gets (PEP 691): from `Accept` by weights, or from `?format=`.

use packhouse_sdk::{Accept, Failure, Request};

/// A representation of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As `text/html`, for browsers and old clients.
    Html,
    /// The same, under its own type.
    HtmlV1,
    Json,
}

/// What a client may ask for, with what it gets. Of those that it likes equally, the first.
const OFFERED: [(&str, Form); 5] = [
    ("text/html", Form::Html),
    ("application/vnd.pypi.simple.v1+html", Form::HtmlV1),
    ("application/vnd.pypi.simple.v1+json", Form::Json),
    ("application/vnd.pypi.simple.latest+html", Form::HtmlV1),
    ("application/vnd.pypi.simple.latest+json", Form::Json),
];

impl Form {
    /// What it is sent as.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::HtmlV1 => "application/vnd.pypi.simple.v1+html",
            Self::Json => "application/vnd.pypi.simple.v1+json",
        }
    }

    /// What this request asks for; 406 when it is none that there is.
    pub(crate) fn of(request: &Request) -> Result<Self, Failure> {
        let wanted = request.query("format").or(request.header("accept")).unwrap_or("*/*");
        choose(wanted).ok_or_else(|| {
            let offered: Vec<&str> = OFFERED.iter().take(3).map(|(name, _)| *name).collect();
            let text = format!("The index is there as {}; none of them is accepted", offered.join(", "));
            Failure::new(406, "not_acceptable", text)
        })
    }
}

fn choose(accept: &str) -> Option<Form> {
    let chosen = Accept::parse(accept).choose(OFFERED.iter().map(|(name, _)| *name))?;
    OFFERED.iter().find(|(name, _)| *name == chosen).map(|(_, form)| *form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_is_understood() {
        let pip = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";
        for (accept, expected) in [
            (pip, Some(Form::Json)),
            ("*/*", Some(Form::Html)),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Some(Form::Html)),
            ("text/*", Some(Form::Html)),
            ("application/*", Some(Form::HtmlV1)),
            ("application/vnd.pypi.simple.latest+json", Some(Form::Json)),
            ("application/vnd.pypi.simple.latest+html", Some(Form::HtmlV1)),
            ("text/html;q=0, */*", Some(Form::HtmlV1)),
            ("TEXT/HTML", Some(Form::Html)),
            ("application/vnd.pypi.simple.v2+json", None),
            ("application/json", None),
            ("text/html;q=0", None),
            ("text/html;q=x", None),
            ("application/vnd.pypi.simple.v2+json, text/html;q=0.01", Some(Form::Html)),
        ] {
            assert_eq!(choose(accept), expected, "{accept}");
        }
    }
}
