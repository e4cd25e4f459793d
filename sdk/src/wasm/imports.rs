//! Requests and the host, which call the imports.

use std::cell::Cell;

use super::blobs::{WriterHandle, blob};
use super::convert;
use super::generated::packhouse::format as wit;
use super::repository;
use super::upstream::FetchHandle;
use crate::host::{Host, HostBlob, HostFetch, HostPart, HostRepository, HostRequest, HostWriter, Pairs};
use crate::request::KnownRequest;
use crate::{Error, LoginState, Request, Token};

thread_local! {
    /// Values that `route` read from the request, for `handle`. The host may call `handle` in the
    /// same instance, for the same request.
    static ROUTED: Cell<Option<KnownRequest>> = const { Cell::new(None) };
}

/// Reads the values that select the request's row.
pub(super) fn request(kind: String, host: &wit::http::Request) -> Request<'_> {
    Request::new(kind, host.method(), host.claim(), host.path(), host)
}

/// Stores the values of the request for the next call about it in this instance.
pub(super) fn leave(request: Request<'_>) {
    ROUTED.set(Some(request.known()));
}

/// Restores the request of an earlier call in this instance, or reads it like [`request`].
pub(super) fn request_again<'a>(
    target: Option<&wit::records::Repository>,
    host: &'a wit::http::Request,
) -> Request<'a> {
    match ROUTED.take() {
        Some(known) => Request::again(known, host),
        None => request(target.map(wit::records::Repository::kind).unwrap_or_default(), host),
    }
}

impl HostRequest for wit::http::Request {
    fn query(&self) -> Pairs {
        Self::query(self)
    }

    fn headers(&self) -> Pairs {
        convert::pairs(Self::headers(self))
    }

    fn address(&self) -> String {
        Self::address(self)
    }

    fn caller(&self) -> Option<String> {
        Self::caller(self)
    }

    fn is_moved(&self) -> bool {
        Self::moved(self)
    }

    fn take_body(&self) -> Option<Box<dyn HostBlob>> {
        Self::take_body(self).map(blob)
    }

    fn take_parts(&self) -> Vec<HostPart> {
        let parts = Self::take_parts(self).into_iter();
        parts
            .map(|part| HostPart {
                name: part.name,
                filename: part.filename,
                headers: convert::pairs(part.headers),
                body: blob(part.body),
            })
            .collect()
    }
}

/// Functions that the component imports.
pub(super) struct Imports;

impl Host for Imports {
    fn log(&self, level: &str, message: &str, fields: &[(&str, &str)]) {
        let fields: Vec<_> =
            fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        wit::host::log(level, message, &fields);
    }

    fn now(&self) -> u64 {
        wit::host::now()
    }

    fn writer(&self) -> Box<dyn HostWriter> {
        Box::new(WriterHandle(wit::blobs::Writer::new()))
    }

    fn fetch(&self, method: &str, target: &str) -> Box<dyn HostFetch> {
        Box::new(FetchHandle(wit::upstream::Fetch::new(method, target)))
    }

    fn leave_out(&self, proxy: &dyn HostRepository, reason: &str) {
        // The host knows only its own repositories, so nothing is reported for any other.
        if let Ok(proxy) = repository::handle(proxy) {
            wit::upstream::leave_out(proxy, reason);
        }
    }

    fn finish_login(&self, id: &str) -> Result<LoginState, Error> {
        Ok(match wit::identity::finish_login(id).map_err(convert::error)? {
            wit::identity::LoginState::Waiting(seconds) => LoginState::Waiting(seconds),
            wit::identity::LoginState::Granted(placeholder) => LoginState::Granted(placeholder),
            wit::identity::LoginState::Gone => LoginState::Gone,
        })
    }

    fn tokens(&self) -> Result<Vec<Token>, Error> {
        let tokens = wit::identity::tokens().map_err(convert::error)?.into_iter();
        Ok(tokens
            .map(|token| Token {
                id: token.id,
                name: token.name,
                hint: token.hint,
                scope: token.scope,
                created: token.created,
                expires: token.expires,
            })
            .collect())
    }

    fn revoke(&self, id: &str) -> Result<bool, Error> {
        wit::identity::revoke(id).map_err(convert::error)
    }
}
