//! The SDK over the contract's imports: the only place that knows generated code.

#[cfg(feature = "allocator")]
mod allocator;
mod blobs;
mod component;
mod convert;
mod imports;
mod repository;
mod upstream;

pub use component::Component;
pub use plugin::export_plugin;
pub use present::export_present;
pub use retention::export_retention;
pub use upkeep::export_upkeep;
pub use wit_bindgen;

/// The world's imports, as wit-bindgen makes them.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
mod generated {
    wit_bindgen::generate!({
        world: "imports",
        path: "../wit/v0.1",
        generate_all,
        runtime_path: "::packhouse_sdk::__private::wit_bindgen::rt",
    });
}

/// World `plugin`.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod plugin {
    wit_bindgen::generate!({
        world: "plugin",
        path: "../wit/v0.1",
        with: {
            "packhouse:format/types@0.1.0": crate::wasm::generated::packhouse::format::types,
            "packhouse:format/host@0.1.0": crate::wasm::generated::packhouse::format::host,
            "packhouse:format/http@0.1.0": crate::wasm::generated::packhouse::format::http,
            "packhouse:format/blobs@0.1.0": crate::wasm::generated::packhouse::format::blobs,
            "packhouse:format/records@0.1.0": crate::wasm::generated::packhouse::format::records,
            "packhouse:format/upstream@0.1.0": crate::wasm::generated::packhouse::format::upstream,
            "packhouse:format/releases@0.1.0": crate::wasm::generated::packhouse::format::releases,
            "packhouse:format/identity@0.1.0": crate::wasm::generated::packhouse::format::identity,
            "packhouse:format/signing@0.1.0": crate::wasm::generated::packhouse::format::signing,
            "packhouse:format/memo@0.1.0": crate::wasm::generated::packhouse::format::memo,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_plugin",
        runtime_path: "::packhouse_sdk::__private::wit_bindgen::rt",
    });
}

/// What world `plugin-with-upkeep` has besides: wit-component unites the two.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod upkeep {
    wit_bindgen::generate!({
        world: "packhouse:sdk/upkeep",
        path: "../wit/v0.1",
        inline: "
            package packhouse:sdk;
            world upkeep {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/upkeep@0.1.0;
            }
        ",
        with: {
            "packhouse:format/types@0.1.0": crate::wasm::generated::packhouse::format::types,
            "packhouse:format/host@0.1.0": crate::wasm::generated::packhouse::format::host,
            "packhouse:format/http@0.1.0": crate::wasm::generated::packhouse::format::http,
            "packhouse:format/blobs@0.1.0": crate::wasm::generated::packhouse::format::blobs,
            "packhouse:format/records@0.1.0": crate::wasm::generated::packhouse::format::records,
            "packhouse:format/upstream@0.1.0": crate::wasm::generated::packhouse::format::upstream,
            "packhouse:format/releases@0.1.0": crate::wasm::generated::packhouse::format::releases,
            "packhouse:format/identity@0.1.0": crate::wasm::generated::packhouse::format::identity,
            "packhouse:format/signing@0.1.0": crate::wasm::generated::packhouse::format::signing,
            "packhouse:format/memo@0.1.0": crate::wasm::generated::packhouse::format::memo,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_upkeep",
        runtime_path: "::packhouse_sdk::__private::wit_bindgen::rt",
    });
}

/// What world `plugin-with-present` has besides.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod present {
    wit_bindgen::generate!({
        world: "packhouse:sdk/present",
        path: "../wit/v0.1",
        inline: "
            package packhouse:sdk;
            world present {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/present@0.1.0;
            }
        ",
        with: {
            "packhouse:format/types@0.1.0": crate::wasm::generated::packhouse::format::types,
            "packhouse:format/host@0.1.0": crate::wasm::generated::packhouse::format::host,
            "packhouse:format/http@0.1.0": crate::wasm::generated::packhouse::format::http,
            "packhouse:format/blobs@0.1.0": crate::wasm::generated::packhouse::format::blobs,
            "packhouse:format/records@0.1.0": crate::wasm::generated::packhouse::format::records,
            "packhouse:format/upstream@0.1.0": crate::wasm::generated::packhouse::format::upstream,
            "packhouse:format/releases@0.1.0": crate::wasm::generated::packhouse::format::releases,
            "packhouse:format/identity@0.1.0": crate::wasm::generated::packhouse::format::identity,
            "packhouse:format/signing@0.1.0": crate::wasm::generated::packhouse::format::signing,
            "packhouse:format/memo@0.1.0": crate::wasm::generated::packhouse::format::memo,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_present",
        runtime_path: "::packhouse_sdk::__private::wit_bindgen::rt",
    });
}

/// What world `plugin-with-retention` has besides.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod retention {
    wit_bindgen::generate!({
        world: "packhouse:sdk/retention",
        path: "../wit/v0.1",
        inline: "
            package packhouse:sdk;
            world retention {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/retention@0.1.0;
            }
        ",
        with: {
            "packhouse:format/types@0.1.0": crate::wasm::generated::packhouse::format::types,
            "packhouse:format/host@0.1.0": crate::wasm::generated::packhouse::format::host,
            "packhouse:format/http@0.1.0": crate::wasm::generated::packhouse::format::http,
            "packhouse:format/blobs@0.1.0": crate::wasm::generated::packhouse::format::blobs,
            "packhouse:format/records@0.1.0": crate::wasm::generated::packhouse::format::records,
            "packhouse:format/upstream@0.1.0": crate::wasm::generated::packhouse::format::upstream,
            "packhouse:format/releases@0.1.0": crate::wasm::generated::packhouse::format::releases,
            "packhouse:format/identity@0.1.0": crate::wasm::generated::packhouse::format::identity,
            "packhouse:format/signing@0.1.0": crate::wasm::generated::packhouse::format::signing,
            "packhouse:format/memo@0.1.0": crate::wasm::generated::packhouse::format::memo,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_retention",
        runtime_path: "::packhouse_sdk::__private::wit_bindgen::rt",
    });
}
