//! Macro that exports a format as a component.

/// Exports a format as the crate's component. The optional interfaces that the type implements are
/// listed after the type, in this order:
///
/// - `export!(Maven)` for [`Format`](crate::Format) alone
/// - `export!(Maven, upkeep)` with [`Upkeep`](crate::Upkeep)
/// - `export!(Maven, upkeep, present)` with [`Present`](crate::Present)
/// - `export!(Maven, upkeep, present, retention)` with [`Retention`](crate::Retention)
/// - `export!(Maven, upkeep, present, retention, versions)` with [`Versions`](crate::Versions)
///
/// `export!(Maven, present)` is possible too. On targets other than Wasm, the macro only checks
/// that the type implements the traits.
#[macro_export]
macro_rules! export {
    ($format:ty) => {
        const _: () = {
            const fn is_format<F: $crate::Format>() {}
            is_format::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export!($format);
        };
    };
    ($format:ty, upkeep) => {
        $crate::export!($format);
        const _: () = {
            const fn has_upkeep<F: $crate::Upkeep>() {}
            has_upkeep::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export_upkeep!($format);
        };
    };
    ($format:ty, present) => {
        $crate::export!($format);
        const _: () = {
            const fn has_present<F: $crate::Present>() {}
            has_present::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export_present!($format);
        };
    };
    ($format:ty, upkeep, present) => {
        $crate::export!($format, upkeep);
        const _: () = {
            const fn has_present<F: $crate::Present>() {}
            has_present::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export_present!($format);
        };
    };
    ($format:ty, upkeep, present, retention) => {
        $crate::export!($format, upkeep, present);
        const _: () = {
            const fn has_retention<F: $crate::Retention>() {}
            has_retention::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export_retention!($format);
        };
    };
    ($format:ty, upkeep, present, retention, versions) => {
        $crate::export!($format, upkeep, present, retention);
        const _: () = {
            const fn has_versions<F: $crate::Versions>() {}
            has_versions::<$format>();
            #[cfg(target_arch = "wasm32")]
            $crate::__export_versions!($format);
        };
    };
}

/// Expansion of [`export!`] in Wasm: the exports, and a custom section with the version of the
/// contract.
#[doc(hidden)]
#[macro_export]
macro_rules! __export {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_plugin!(Component with_types_in $crate::__private::plugin);

        #[used]
        #[unsafe(link_section = "packhouse:sdk")]
        static SDK: [u8; $crate::__private::API_VERSION.len()] = *$crate::__private::API_VERSION;
    };
}

/// Expansion of [`export!`] in Wasm for the interface `upkeep`.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_upkeep {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_upkeep!(Component with_types_in $crate::__private::upkeep);
    };
}

/// Expansion of [`export!`] in Wasm for the interface `present`.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_present {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_present!(Component with_types_in $crate::__private::present);
    };
}

/// Expansion of [`export!`] in Wasm for the interface `retention`.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_retention {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_retention!(Component with_types_in $crate::__private::retention);
    };
}

/// Expansion of [`export!`] in Wasm for the interface `versions`.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_versions {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_versions!(Component with_types_in $crate::__private::versions);
    };
}
