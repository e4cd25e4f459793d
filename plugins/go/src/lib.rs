//! Format plugin for Go modules: the GOPROXY protocol, and a `PUT` of a module's zip.
//!
//! The go command cannot publish modules. A client therefore publishes a version with one request,
//! which uploads the zip that the go command later downloads. docs/clients/go.md describes the
//! protocol and the design decisions.

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

/// Maximum number of bytes of a module, packed and unpacked: 500 MiB. The go command has the same
/// limit.
const FILE_LIMIT: u64 = 500 << 20;

/// The format plugin. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Go;

impl Format for Go {
    fn describe() -> Description {
        Description::new("go", env!("CARGO_PKG_VERSION"))
            .ecosystem("Go")
            .purl("golang", "/")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            // The go command shows the body of an error response only if the body is plain text.
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

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same module")
}

#[cfg(test)]
extern crate self as packhouse_go;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
