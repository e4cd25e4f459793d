//! Requests and the host itself, over the imports.

use super::blobs::{WriterHandle, blob};
use super::convert;
use super::generated::packhouse::format as wit;
use super::upstream::FetchHandle;
use crate::host::{Host, HostBlob, HostFetch, HostPart, HostRequest, HostWriter};
use crate::{Error, LoginState, Request, Token};

/// Reads a request once. The body, and who asks, stay with the host until they are wanted.
pub(super) fn request(kind: String, host: &wit::http::Request) -> Request<'_> {
    Request {
        kind,
        method: host.method(),
        claim: host.claim(),
        path: host.path(),
        query: host.query(),
        headers: convert::pairs(host.headers()),
        address: host.address(),
        host,
    }
}

impl HostRequest for wit::http::Request {
    fn caller(&self) -> Option<String> {
        Self::caller(self)
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

/// The imports themselves.
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
