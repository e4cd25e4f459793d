//! What a plugin may import, one file for each interface of the contract, and the linkers made of them.

mod blobs;
mod decode;
mod host;
mod http;
mod identity;
mod records;
mod releases;
mod signing;
mod transaction;
mod upstream;

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Result};

use crate::bindings::packhouse::format as wit;
use crate::bindings::packhouse::format::types::Error;
use crate::error::CallError;
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

/// Which functions a linker made by [`restricted`] leaves as they are.
pub(crate) type Allowed = fn(interface: &str, function: &str) -> bool;

/// In `describe` nothing of the contract can be called.
pub(crate) const NOTHING: Allowed = |_, _| false;

/// In `route` a request can be read and an intent be made.
pub(crate) const PURE: Allowed = |interface, function| {
    interface == "http" && (function.contains("]request.") || function.contains("]intent"))
};

/// Everything that this host offers; WASI only where the configuration says so.
pub(crate) fn linker(engine: &Engine, wasi: bool) -> Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    wit::types::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    host::add_to_linker(&mut linker)?;
    http::add_to_linker(&mut linker)?;
    blobs::add_to_linker(&mut linker)?;
    records::add_to_linker(&mut linker)?;
    upstream::add_to_linker(&mut linker)?;
    releases::add_to_linker(&mut linker)?;
    identity::add_to_linker(&mut linker)?;
    signing::add_to_linker(&mut linker)?;
    if wasi {
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    }
    Ok(linker)
}

/// The same, but every function of the contract that `allowed` does not name ends the call, saying which it was and where.
pub(crate) fn restricted(
    full: &Linker<HostState>,
    component: &Component,
    function: &'static str,
    allowed: Allowed,
) -> Result<Linker<HostState>> {
    let mut linker = full.clone();
    linker.allow_shadowing(true);
    for (import, item) in component.component_type().imports(component.engine()) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        let Some(interface) = crate::contract::interface_of(import) else { continue };
        let mut named = linker.instance(import)?;
        for (name, export) in instance.exports(component.engine()) {
            if !matches!(export.ty, ComponentItem::ComponentFunc(_)) || allowed(interface, name) {
                continue;
            }
            let message = format!("{function} called {interface}.{name}, which cannot be called from there");
            named.func_new(name, move |_, _, _, _| Err(CallError::Trap(message.clone()).into()))?;
        }
    }
    Ok(linker)
}
