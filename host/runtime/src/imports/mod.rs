//! Interfaces that a plugin may import, one file for each, and the linker that combines them. Calls
//! are recorded in `recorded_imports.rs`.

mod advisories;
mod blobs;
mod decode;
mod host;
mod http;
mod identity;
mod memo;
#[cfg(test)]
mod phase_access_tests;
mod recorded_imports;
mod records;
mod releases;
mod signing;
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
            HostError::Tell(error) => Ok(wit_error(error)),
            HostError::Stop(error) => Err(error.into()),
        }
    }
}

fn wit_error(error: GuestError) -> Error {
    match error {
        GuestError::Denied => Error::Denied,
        GuestError::Invalid(what) => Error::Invalid(what),
        GuestError::TooLarge(bytes) => Error::TooLarge(bytes),
        GuestError::Unavailable(why) => Error::Unavailable(why),
        GuestError::Other(why) => Error::Other(why),
    }
}

/// Links everything that this host offers, and WASI only if `wasi` is true.
pub(crate) fn linker(engine: &Engine, wasi: bool) -> Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    recorded_imports::add_to_linker(&mut linker)?;
    if wasi {
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    }
    Ok(linker)
}
