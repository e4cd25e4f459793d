//! What a plugin may import, one file for each interface of the contract, and the linkers made of them.

#![allow(
    unreachable_pub,
    reason = "what stands behind a handle is named by the generated code, which is public"
)]

pub(crate) mod blobs;
mod decode;
mod host;
pub(crate) mod http;
mod identity;
pub(crate) mod records;
mod signing;
pub(crate) mod transaction;
pub(crate) mod upstream;

use packhouse_store::StoreError;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Result};

use crate::bindings::packhouse::format as wit;
use crate::bindings::packhouse::format::types::Error;
use crate::error::CallError;
use crate::services::ServiceError;
use crate::state::HostState;

/// Why a host function did not do what it was asked: either the guest is told, or its call ends.
pub enum HostError {
    /// The guest's own business.
    Tell(Error),
    /// The call ends: the host's storage failed, or a limit is broken.
    Stop(CallError),
}

impl HostError {
    pub(crate) fn invalid(what: impl Into<String>) -> HostError {
        HostError::Tell(Error::Invalid(what.into()))
    }

    pub(crate) fn too_large(bytes: u64) -> HostError {
        HostError::Tell(Error::TooLarge(bytes))
    }

    pub(crate) fn denied() -> HostError {
        HostError::Tell(Error::Denied)
    }
}

impl From<CallError> for HostError {
    fn from(error: CallError) -> HostError {
        HostError::Stop(error)
    }
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> HostError {
        match error {
            StoreError::TooLarge { observed, .. } => HostError::too_large(observed),
            StoreError::Invalid(what) => HostError::invalid(what),
            StoreError::BrokenOff(why) => HostError::Tell(Error::Unavailable(why)),
            other => HostError::Stop(CallError::Store(other)),
        }
    }
}

impl From<ServiceError> for HostError {
    fn from(error: ServiceError) -> HostError {
        match error {
            ServiceError::Denied => HostError::denied(),
            ServiceError::Invalid(what) => HostError::invalid(what),
            ServiceError::TooLarge(bytes) => HostError::too_large(bytes),
            ServiceError::Unavailable(why) => HostError::Tell(Error::Unavailable(why)),
            ServiceError::TooMany { retry_after_s } => HostError::Stop(CallError::TooMany { retry_after_s }),
            ServiceError::Other(why) => HostError::Tell(Error::Other(why)),
            ServiceError::Store(error) => HostError::Stop(CallError::Store(error)),
        }
    }
}

impl wit::types::Host for HostState {
    fn convert_error(&mut self, error: HostError) -> Result<Error> {
        match error {
            HostError::Tell(error) => Ok(error),
            HostError::Stop(error) => Err(error.into()),
        }
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
    wit::host::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    wit::http::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    wit::blobs::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    wit::records::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    wit::upstream::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    wit::identity::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
    wit::signing::add_to_linker::<_, HasSelf<HostState>>(&mut linker, |state| state)?;
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
