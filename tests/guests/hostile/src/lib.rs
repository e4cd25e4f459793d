//! A plugin that does what no plugin should; the first path segment selects the attack. Some
//! segments select ordinary behaviour, so that tests can show that the next request on the same
//! plugin works.
//!
//! It uses the generated bindings instead of the SDK, because the SDK would prevent most of this.

mod attack;
mod behave;

use std::sync::atomic::{AtomicU32, Ordering};

wit_bindgen::generate!({ path: "../../../wit/v0.1", world: "plugin" });

use exports::packhouse::format::format::Guest;
use packhouse::format::blobs::Blob;
use packhouse::format::http::{Content, Failure, Intent, Problem, Request, Response};
use packhouse::format::records::Repository;
use packhouse::format::types::{Error, Header};

struct Hostile;

/// How often `route` ran in this instance.
static ROUTED: AtomicU32 = AtomicU32::new(0);

/// The action of a request with this path.
fn action(path: &str) -> &'static str {
    match path {
        "put"
        | "keep"
        | "keep-refuse"
        | "decode"
        | "digest"
        | "trap-mid-publish"
        | "flood-writer"
        | "flood-transaction"
        | "routed-here-publish" => "publish",
        "bad-intent" => "steal",
        _ => "read",
    }
}

fn first(request: &Request) -> String {
    request.path().into_iter().next().unwrap_or_default()
}

fn second(request: &Request) -> String {
    request.path().into_iter().nth(1).unwrap_or_default()
}

impl Guest for Hostile {
    fn describe() -> String {
        r#"{"format": "hostile", "version": "0.1.0", "kinds": ["hosted", "proxy"]}"#.to_owned()
    }

    fn route(kind: String, request: &Request) -> Result<Intent, Failure> {
        ROUTED.fetch_add(1, Ordering::Relaxed);
        let path = first(request);
        match path.as_str() {
            "import-in-route" => drop(packhouse::format::host::now()),
            "options-in-route" => drop(packhouse::format::http::ResponseOptions::new()),
            "writer-in-route" => drop(packhouse::format::blobs::Writer::new()),
            "loop-in-route" => attack::spin(),
            "known-alone" if request.caller().is_none() => {
                return Err(refusal(404, "not_for_you", "this is for those who are known"));
            }
            "refuse" => return Err(refusal(404, "not_found", &format!("nothing of that name in a {kind}"))),
            _ => {}
        }
        let intent = Intent::new(action(&path), Some(&path));
        if action(&path) == "publish" {
            intent.body(1 << 40);
            intent.check();
        }
        if path == "bad-digest" {
            intent.digests(&["crc32".to_owned()]);
        }
        Ok(intent)
    }

    fn check(request: &Request, target: Option<Repository>, _others: Vec<Repository>) -> Result<(), Failure> {
        let target = target.ok_or_else(|| refusal(404, "no_target", "no repository"))?;
        match (request.take_body().is_some(), target.begin()) {
            (false, Err(Error::Denied)) => Ok(()),
            _ => Err(refusal(500, "check_can_write", "a check saw a body or could begin")),
        }
    }

    fn handle(
        request: &Request,
        target: Option<Repository>,
        others: Vec<Repository>,
    ) -> Result<Response, Failure> {
        let target = target.ok_or_else(|| refusal(404, "no_target", "no repository"))?;
        let path = first(request);
        match behave::respond(&path, request, &target, &others) {
            Some(answer) => answer,
            None => attack::respond(&path, request, target),
        }
    }
}

fn refusal(status: u16, code: &str, message: &str) -> Failure {
    let problem = Problem { code: code.to_owned(), message: message.to_owned(), detail: String::new() };
    Failure { status, headers: Vec::new(), problems: vec![problem] }
}

/// Turns an error of the host into a refusal whose code is the error's name.
fn refused(error: Error) -> Failure {
    match error {
        Error::Denied => refusal(403, "denied", ""),
        Error::Invalid(what) => refusal(400, "invalid", &what),
        Error::TooLarge(bytes) => refusal(413, "too_large", &bytes.to_string()),
        Error::Unavailable(why) => refusal(502, "unavailable", &why),
        Error::Other(why) => refusal(501, "other", &why),
    }
}

fn text(status: u16, text: impl Into<String>) -> Response {
    response(status, Vec::new(), Content::Inline(text.into().into_bytes()))
}

fn blob(blob: Blob) -> Response {
    response(200, Vec::new(), Content::Blob(blob))
}

fn response(status: u16, headers: Vec<Header>, content: Content) -> Response {
    Response { status, headers, content, options: None }
}

export!(Hostile);
