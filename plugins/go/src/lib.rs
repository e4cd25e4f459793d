//! Go's module proxies as a format plugin: the GOPROXY protocol, and a `PUT` of a module's zip.
//!
//! The go command puts nothing anywhere by itself, so that publishing is one request with the file that it would fetch.
//! docs/formats/go.md says what is served and what was decided.

mod address;
mod clients;
mod fetch;
mod gomod;
mod hosted;
mod module;
mod module_zip;
mod proxy;
mod publish;
mod records;
mod sumdb;
mod upkeep;
mod version;
mod versions;

use packhouse_sdk::{Description, ErrorTemplate, Failure, Format, Router, SentencePlace};
use serde_json::json;

/// Bytes of the largest module, packed and unpacked, as the go command has it: 500 MiB.
const FILE_LIMIT: u64 = 500 << 20;

/// The format. It holds nothing.
#[derive(Clone, Copy, Debug)]
pub struct Go;

impl Format for Go {
    fn describe() -> Description {
        Description::new("go", env!("CARGO_PKG_VERSION"))
            .ecosystem("Go")
            .purl("golang", "/")
            .kinds(&["hosted", "proxy", "group"])
            // The go command shows what a refusal says where that is plain text.
            .errors(ErrorTemplate::new(json!("{message}\n")))
            .sentence_clients(&["Go-http-client/"], &SentencePlace::Body)
            .upstream_credentials(&["basic"])
            .open_requests(&[])
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .counted_files(&["*.zip"])
    }

    fn routes(router: &mut Router) {
        router.get("/sumdb/{path..}", sumdb::plan, sumdb::get);
        router.get("/{path..}", fetch::plan, fetch::get);
        router.put("/{path..}", publish::plan, publish::put).check(publish::check);
    }
}

packhouse_sdk::export!(Go, upkeep, present, retention, versions);

/// What a change ends with that others were faster than each time.
fn busy() -> Failure {
    Failure::busy("the same module")
}

#[cfg(test)]
extern crate self as packhouse_go;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
