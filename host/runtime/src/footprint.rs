//! Initial memory of a component, before it does anything.

use wasmtime::component::Component;

use crate::config::Limits;

/// Bytes of a memory page.
const PAGE: u64 = 64 << 10;

/// Bytes of the largest memory that an instance begins with. None if the size depends on the linked
/// imports. An instance with several memories begins with more bytes, but wasmtime reports only the
/// largest memory.
pub(crate) fn memory_bytes(component: &Component) -> Option<usize> {
    let pages = component.resources_required()?.max_initial_memory_size.unwrap_or(0);
    usize::try_from(pages.checked_mul(PAGE)?).ok()
}

/// Checks that an instance can start with at most `most` bytes. The error says what to set.
pub(crate) fn fits(component: &Component, most: usize) -> Result<(), String> {
    match memory_bytes(component) {
        Some(bytes) if bytes > most => Err(format!(
            "each call of it starts with {bytes} bytes of memory, over its limit of {most}: set \
             `memory_bytes` of this plugin to at least that"
        )),
        _ => Ok(()),
    }
}

/// Memory limit of the `describe` call, in bytes: the default limit, or more if the component may
/// begin with more.
pub(crate) fn to_describe(component: &Component) -> usize {
    let memories = component.resources_required().map_or(0, |required| required.num_memories);
    let most = memory_bytes(component).unwrap_or(0).saturating_mul(memories as usize);
    Limits::default().memory_bytes.max(most)
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;

    use super::*;

    #[test]
    fn a_component_that_begins_with_more_than_its_limit_is_refused() {
        let text = r#"(component
            (core module $a (memory 32))
            (core module $b (memory 1600))
            (core instance (instantiate $a))
            (core instance (instantiate $b)))"#;
        let engine = Engine::default();
        let component = Component::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        assert_eq!(memory_bytes(&component), Some(100 << 20));
        assert_eq!(to_describe(&component), 200 << 20, "room for two of that size");
        assert_eq!(fits(&component, 100 << 20), Ok(()));
        let refused = fits(&component, (100 << 20) - 1).unwrap_err();
        assert!(
            refused.contains("starts with 104857600 bytes") && refused.contains("set `memory_bytes`"),
            "{refused}"
        );
        let small = Component::new(&engine, wat::parse_str("(component)").unwrap()).unwrap();
        assert_eq!((memory_bytes(&small), to_describe(&small)), (Some(0), Limits::default().memory_bytes));
    }
}
