//! The SDK over the contract's imports: the only place that knows generated code.

#[cfg(feature = "allocator")]
mod allocator;
mod blobs;
mod component;
mod convert;
mod imports;
mod panics;
mod repository;
mod upstream;

pub use component::Component;
pub use plugin::export_plugin;
pub use present::export_present;
pub use retention::export_retention;
pub use upkeep::export_upkeep;
pub use versions::export_versions;
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

/// A world's exports, over those imports, with the macro that makes them of a type. `inline` is a world that the contract does not name.
macro_rules! world {
    ($world:tt, $export:tt $(, $inline:tt)?) => {
        wit_bindgen::generate!({
            world: $world,
            path: "../wit/v0.1",
            $(inline: $inline,)?
            with: {
                "packhouse:format/types@0.1.0": crate::wasm::generated::packhouse::format::types,
                "packhouse:format/host@0.1.0": crate::wasm::generated::packhouse::format::host,
                "packhouse:format/http@0.1.0": crate::wasm::generated::packhouse::format::http,
                "packhouse:format/blobs@0.1.0": crate::wasm::generated::packhouse::format::blobs,
                "packhouse:format/records@0.1.0": crate::wasm::generated::packhouse::format::records,
                "packhouse:format/upstream@0.1.0": crate::wasm::generated::packhouse::format::upstream,
                "packhouse:format/releases@0.1.0": crate::wasm::generated::packhouse::format::releases,
                "packhouse:format/advisories@0.1.0": crate::wasm::generated::packhouse::format::advisories,
                "packhouse:format/identity@0.1.0": crate::wasm::generated::packhouse::format::identity,
                "packhouse:format/signing@0.1.0": crate::wasm::generated::packhouse::format::signing,
                "packhouse:format/memo@0.1.0": crate::wasm::generated::packhouse::format::memo,
            },
            generate_all,
            pub_export_macro: true,
            export_macro_name: $export,
            runtime_path: "::packhouse_sdk::__private::wit_bindgen::rt",
        });
    };
}

/// World `plugin`.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod plugin {
    world!("plugin", "export_plugin");
}

/// What world `plugin-with-upkeep` has besides: wit-component unites the two.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod upkeep {
    world!(
        "packhouse:sdk/upkeep",
        "export_upkeep",
        "
            package packhouse:sdk;
            world upkeep {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/upkeep@0.1.0;
            }
        "
    );
}

/// What world `plugin-with-present` has besides.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod present {
    world!(
        "packhouse:sdk/present",
        "export_present",
        "
            package packhouse:sdk;
            world present {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/present@0.1.0;
            }
        "
    );
}

/// What world `plugin-with-retention` has besides.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod retention {
    world!(
        "packhouse:sdk/retention",
        "export_retention",
        "
            package packhouse:sdk;
            world retention {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/retention@0.1.0;
            }
        "
    );
}

/// What world `plugin-with-versions` has besides.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod versions {
    world!(
        "packhouse:sdk/versions",
        "export_versions",
        "
            package packhouse:sdk;
            world versions {
                include packhouse:format/imports@0.1.0;
                export packhouse:format/versions@0.1.0;
            }
        "
    );
}
