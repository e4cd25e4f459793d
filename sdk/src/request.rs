//! Request of a client. The SDK reads the values that select the row at once, and other values on
//! demand. The body stays a handle.

use std::cell::OnceCell;

use crate::host::{HostRequest, Pairs};
use crate::{Blob, Failure};

/// Request as the host passes it, without any credentials.
pub struct Request<'a> {
    /// Kind of the repository: `hosted`, `proxy` or `group`; empty under a claim that names no
    /// repository.
    pub kind: String,
    /// Method in upper case. `HEAD` uses the rows of `GET`.
    pub method: String,
    /// Name of the matching claim of the description; `None` below `/repositories/`.
    pub claim: Option<String>,
    /// Path below the address as percent-decoded segments. A trailing slash is an empty last
    /// segment; the address itself is an empty list.
    pub path: Vec<String>,
    lazy: LazyValues,
    host: &'a dyn HostRequest,
}

/// Values that the plugin has requested so far. If a plugin requests none of them, the host may
/// serve its response from the cache for any query and header fields.
#[derive(Default)]
struct LazyValues {
    query: OnceCell<Pairs>,
    headers: OnceCell<Pairs>,
    address: OnceCell<String>,
}

/// Values of a request without its host handle, for the next call about the same request.
#[cfg(target_arch = "wasm32")]
pub(crate) struct KnownRequest {
    kind: String,
    method: String,
    claim: Option<String>,
    path: Vec<String>,
    lazy: LazyValues,
}

impl<'a> Request<'a> {
    /// Creates a request of this method, claim and path to a repository of this kind. The request
    /// reads everything else from `host` on demand.
    pub fn new(
        kind: String,
        method: String,
        claim: Option<String>,
        path: Vec<String>,
        host: &'a dyn HostRequest,
    ) -> Self {
        Self { kind, method, claim, path, lazy: LazyValues::default(), host }
    }

    /// Restores a request from these values.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn again(known: KnownRequest, host: &'a dyn HostRequest) -> Self {
        let KnownRequest { kind, method, claim, path, lazy } = known;
        Self { kind, method, claim, path, lazy, host }
    }

    /// Returns the values that were read so far.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn known(self) -> KnownRequest {
        let Self { kind, method, claim, path, lazy, .. } = self;
        KnownRequest { kind, method, claim, path, lazy }
    }

    /// Returns the query parameters in their original order, percent-decoded. A name without `=`
    /// has an empty value. After this call, the host caches the response for this query only.
    pub fn query_pairs(&self) -> &[(String, String)] {
        self.lazy.query.get_or_init(|| self.host.query())
    }

    /// Returns the header fields that the description requests, and `accept` and `content-*`; names
    /// are in lower case. After this call, the host caches the response for these values only.
    pub fn headers(&self) -> &[(String, String)] {
        self.lazy.headers.get_or_init(|| self.host.headers())
    }

    /// Returns the public address that `path` is relative to, without a slash at the end.
    pub fn address(&self) -> &str {
        self.lazy.address.get_or_init(|| self.host.address())
    }

    /// Returns the first query parameter of this name.
    pub fn query(&self, name: &str) -> Option<&str> {
        find(self.query_pairs(), name)
    }

    /// Returns the header field of this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(self.headers(), name)
    }

    /// Returns the public address of this path below the repository's address; `path` must be
    /// percent-encoded.
    pub fn link(&self, path: &str) -> String {
        format!("{}/{}", self.address(), path.trim_start_matches('/'))
    }

    /// True if the path of the request ends with a slash. The slash of the repository's own address
    /// does not matter.
    pub fn ends_with_slash(&self) -> bool {
        self.path.last().is_some_and(String::is_empty)
    }

    /// Returns the caller's name; `None` for an anonymous caller. After this call, the host does
    /// not cache the response, so call this only if the plugin needs the name.
    pub fn caller(&self) -> Option<String> {
        self.host.caller()
    }

    /// True if the request publishes something that another server served before, and the sender
    /// may move files. Accept such a file even if the format would refuse it as a new release.
    /// Always false in a plan.
    pub fn is_moved(&self) -> bool {
        self.host.is_moved()
    }

    /// Returns the body as it was sent. Only the first call returns it. `None` in a plan, in a
    /// check, and if the intent did not request the body.
    pub fn take_body(&self) -> Option<Blob> {
        self.host.take_body().map(Blob::new)
    }

    /// Returns the body that the plan requested. Only the first call returns it.
    ///
    /// # Errors
    /// An internal failure if the plan requested no body, or if an earlier call returned the body.
    pub fn planned_body(&self) -> Result<Blob, Failure> {
        let missing =
            || Failure::internal(format!("a {} request lacks the body that its plan requested", self.method));
        self.take_body().ok_or_else(missing)
    }

    /// Returns the parts of a form in their original order. Only the first call returns them. Empty
    /// in a plan, in a check, and if the intent did not request the parts.
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

/// Part of a multipart form.
pub struct Part {
    /// Name of the field.
    pub name: String,
    /// Name of the file, if the field has one.
    pub filename: Option<String>,
    /// Header fields of the part; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Content of the part.
    pub body: Blob,
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}
