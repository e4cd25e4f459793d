//! The one macro: makes a component of a format.

/// Exports a format as the crate's component: `export!(Maven)`, or `export!(Maven, upkeep)` for one that implements
/// [`Upkeep`](crate::Upkeep) too. Natively it only checks that the type implements what it says.
#[macro_export]
macro_rules! export {
    ($format:ty) => {
        const _: () = {
            const fn is_format<F: $crate::Format>() {}
            is_format::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export!(export_plugin, plugin, $format);
        };
    };
    ($format:ty, upkeep) => {
        const _: () = {
            const fn is_format<F: $crate::Upkeep>() {}
            is_format::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export!(export_plugin_with_upkeep, plugin_with_upkeep, $format);
        };
    };
}

/// What [`export!`] expands to in Wasm.
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($export:ident, $bindings:ident, $format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::$export!(Component with_types_in $crate::__private::$bindings);

        #[used]
        #[unsafe(link_section = "packhouse:sdk")]
        static SDK: [u8; $crate::API_VERSION.len()] = *$crate::__private::API_VERSION;
    };
}
