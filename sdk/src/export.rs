//! The one macro: makes a component of a format.

/// Exports a format as the crate's component: `export!(Maven)`, or `export!(Maven, upkeep)` for one that implements
/// [`Upkeep`](crate::Upkeep) too, `export!(Maven, upkeep, present)` for one that implements [`Present`](crate::Present) besides, and
/// `export!(Maven, upkeep, present, retention)` for one that implements [`Retention`](crate::Retention) as well; `versions` behind it for
/// one that implements [`Versions`](crate::Versions) too.
/// Natively it only checks that the type implements what it says.
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

/// What [`export!`] expands to in Wasm: the exports, and which contract they were built for.
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

/// What [`export!`] expands to in Wasm, for the optional interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_upkeep {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_upkeep!(Component with_types_in $crate::__private::upkeep);
    };
}

/// What [`export!`] expands to in Wasm, for what people are shown.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_present {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_present!(Component with_types_in $crate::__private::present);
    };
}

/// What [`export!`] expands to in Wasm, for retention.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_retention {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_retention!(Component with_types_in $crate::__private::retention);
    };
}

/// What [`export!`] expands to in Wasm, for the order of versions.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_versions {
    ($format:ty) => {
        type Component = $crate::__private::Component<$format>;
        $crate::__private::export_versions!(Component with_types_in $crate::__private::versions);
    };
}
