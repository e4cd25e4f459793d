//! How much memory a component has from the beginning, before it does anything.

use wasmtime::component::Component;

use crate::config::Limits;

/// Bytes of the largest memory that an instance begins with; none where that depends on what the component is linked with.
pub(crate) fn memory_bytes(component: &Component) -> Option<usize> {
    let largest = component.resources_required()?.max_initial_memory_size.unwrap_or(0);
    usize::try_from(largest).ok()
}

/// Whether an instance can begin at all where it may have `most` bytes; where not, what to set.
pub(crate) fn fits(component: &Component, most: usize) -> Result<(), String> {
    match memory_bytes(component) {
        Some(bytes) if bytes > most => Err(format!(
            "each call of it begins with {bytes} bytes of memory, over its limit of {most}: set `memory_bytes` to as much at least for this plugin"
        )),
        _ => Ok(()),
    }
}

/// Bytes of memory with which it is asked what it is: the default limit, unless it begins with more.
pub(crate) fn to_describe(component: &Component) -> usize {
    Limits::default().memory_bytes.max(memory_bytes(component).unwrap_or(0))
}
