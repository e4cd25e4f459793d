//! A request: what tells its row in the table is read once, the rest when it is first asked for. The body stays a handle.

use std::cell::OnceCell;

use crate::host::{HostRequest, Pairs};
use crate::{Blob, Failure};

/// A request as the host hands it over: every credential is out of it.
pub struct Request<'a> {
    /// The repository's kind: `hosted`, `proxy` or `group`; empty under a claim that names no repository.
    pub kind: String,
    /// In upper case. `HEAD` goes to the rows of `GET`.
    pub method: String,
    /// The claim of the description that matched, by its name; none below `/repositories/`.
    pub claim: Option<String>,
    /// Below the address, each segment percent-decoded. A trailing slash is a last empty segment; the address itself is an
    /// empty list.
    pub path: Vec<String>,
    asked: Asked,
    host: &'a dyn HostRequest,
}

/// What was asked of the host besides. An answer that depends on none of it is kept for every query and every header.
#[derive(Default)]
struct Asked {
    query: OnceCell<Pairs>,
    headers: OnceCell<Pairs>,
    address: OnceCell<String>,
}

/// What is known of a request without its host, for the next call about it.
#[cfg(target_arch = "wasm32")]
pub(crate) struct KnownRequest {
    kind: String,
    method: String,
    claim: Option<String>,
    path: Vec<String>,
    asked: Asked,
}

impl<'a> Request<'a> {
    /// A request of this method, claim and path to a repository of this kind. All else is asked of `host` when it is wanted.
    pub fn new(
        kind: String,
        method: String,
        claim: Option<String>,
        path: Vec<String>,
        host: &'a dyn HostRequest,
    ) -> Self {
        Self { kind, method, claim, path, asked: Asked::default(), host }
    }

    /// The request of which this is known.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn again(known: KnownRequest, host: &'a dyn HostRequest) -> Self {
        let KnownRequest { kind, method, claim, path, asked } = known;
        Self { kind, method, claim, path, asked, host }
    }

    /// What is known of it by now.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn known(self) -> KnownRequest {
        let Self { kind, method, claim, path, asked, .. } = self;
        KnownRequest { kind, method, claim, path, asked }
    }

    /// The query in the order it came, percent-decoded; a name without `=` has an empty value. An answer that looks at it is
    /// kept for this query alone.
    pub fn query_pairs(&self) -> &[(String, String)] {
        self.asked.query.get_or_init(|| self.host.query())
    }

    /// The header fields that the description asks for, and `accept`, `content-*`; names in lower case. An answer that looks at
    /// them is kept for these alone.
    pub fn headers(&self) -> &[(String, String)] {
        self.asked.headers.get_or_init(|| self.host.headers())
    }

    /// The public address that `path` is below, without a slash at its end.
    pub fn address(&self) -> &str {
        self.asked.address.get_or_init(|| self.host.address())
    }

    /// The first value of this name in the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        find(self.query_pairs(), name)
    }

    /// The header field of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(self.headers(), name)
    }

    /// The public address of what lies at this path below the repository's address; `path` is percent-encoded already.
    pub fn link(&self, path: &str) -> String {
        format!("{}/{}", self.address(), path.trim_start_matches('/'))
    }

    /// Whether the address ends with a slash below the repository's own.
    pub fn ends_with_slash(&self) -> bool {
        self.path.last().is_some_and(String::is_empty)
    }

    /// The name of whoever asks, as it may be shown; none for anonymous. An answer that depends on it is not kept for
    /// others: ask only when it is needed.
    pub fn caller(&self) -> Option<String> {
        self.host.caller()
    }

    /// Whether it publishes something that another server served before: its sender says so, and may. Take such a file even if you would
    /// refuse it as a new release. False in a plan.
    pub fn is_moved(&self) -> bool {
        self.host.is_moved()
    }

    /// The body as it was sent. Once; none in a plan and in a check, none when the intent did not ask for it.
    pub fn take_body(&self) -> Option<Blob> {
        self.host.take_body().map(Blob::new)
    }

    /// The body that the plan asked for. Once.
    ///
    /// # Errors
    /// An internal failure where the plan asked for none, or it was taken already.
    pub fn planned_body(&self) -> Result<Blob, Failure> {
        let missing = || Failure::internal(format!("a {} without the body that was planned", self.method));
        self.take_body().ok_or_else(missing)
    }

    /// The parts of a form in the order they came. Once; an empty list where [`Request::take_body`] would be none.
    pub fn take_parts(&self) -> Vec<Part> {
        let parts = self.host.take_parts().into_iter();
        parts
            .map(|part| Part {
                name: part.name,
                filename: part.filename,
                headers: part.headers,
                body: Blob::new(part.body),
            })
            .collect()
    }
}

/// One part of a multipart form.
pub struct Part {
    /// Its field's name.
    pub name: String,
    /// Its file's name, where it has one.
    pub filename: Option<String>,
    /// Its own header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its bytes.
    pub body: Blob,
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}
