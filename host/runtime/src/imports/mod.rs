//! What a plugin may import, one file for each interface of the contract, and the linker made of them, at which calls are recorded
//! (`taped.rs`).

mod advisories;
mod blobs;
mod decode;
mod host;
mod http;
mod identity;
mod memo;
#[cfg(test)]
mod reach;
mod records;
mod releases;
mod signing;
mod taped;
mod transaction;
mod upstream;

use wasmtime::component::Linker;
use wasmtime::{Engine, Result};

use crate::bindings::packhouse::format as wit;
use crate::bindings::packhouse::format::types::Error;
use crate::host_error::{GuestError, HostError};
use crate::state::HostState;

impl wit::types::Host for HostState {
    fn convert_error(&mut self, error: HostError) -> Result<Error> {
        match error {
            HostError::Tell(error) => Ok(told(error)),
            HostError::Stop(error) => Err(error.into()),
        }
    }
}

fn told(error: GuestError) -> Error {
    match error {
        GuestError::Denied => Error::Denied,
        GuestError::Invalid(what) => Error::Invalid(what),
        GuestError::TooLarge(bytes) => Error::TooLarge(bytes),
        GuestError::Unavailable(why) => Error::Unavailable(why),
        GuestError::Other(why) => Error::Other(why),
    }
}

/// Everything that this host offers; WASI only where the configuration says so.
pub(crate) fn linker(engine: &Engine, wasi: bool) -> Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    taped::add_to_linker(&mut linker)?;
    if wasi {
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    }
    Ok(linker)
}
