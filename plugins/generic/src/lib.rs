//! Format plugin for files under any path, with `PUT`, `GET` and `DELETE`. It is meant for files
//! that are not packages of another format.
//!
//! A folder is a package, and each file in it is a version. Retention, search and claimed names
//! therefore work by folder. A claimed name is one that the host never requests from an upstream.
//! docs/clients/generic.md describes the protocol and the design decisions.

mod checksum;
mod clients;
mod delete;
mod fetch;
mod hosted;
mod listing;
mod media;
mod page;
mod path;
mod proxy;
mod publish;
mod records;
mod upkeep;

use packhouse_sdk::{Description, Failure, Format, Router, Setting};

/// Maximum number of bytes of a file: 50 GB.
const FILE_LIMIT: u64 = 50_000_000_000;

/// The format plugin. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Generic;

impl Format for Generic {
    fn describe() -> Description {
        Description::new("generic", env!("CARGO_PKG_VERSION"))
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            .upstream_credentials(&["basic"])
            .request_headers(&checksum::HEADERS)
            .open_requests(&[])
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .setting(
                "overwrite",
                Setting::boolean(false, "Allow uploads to replace stored files")
                    .title("Replace files")
                    .repository_kinds(&["hosted"]),
            )
            .setting(
                "immutable",
                Setting::boolean(
                    false,
                    "Proxies only: the files of the upstream never change, and each is fetched once",
                )
                .title("Files never change")
                .repository_kinds(&["proxy"]),
            )
    }

    fn routes(router: &mut Router) {
        router.get("/", fetch::plan, fetch::get);
        router.get("/{path..}", fetch::plan, fetch::get);
        router.put("/{path..}", publish::plan, publish::put).check(publish::check);
        router.delete("/{path..}", delete::plan, delete::delete);
    }
}

packhouse_sdk::export!(Generic, upkeep, present, retention);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same file")
}

/// Returns the 404 for a path at which nothing is stored.
fn missing(path: &str) -> Failure {
    Failure::not_found(format!("Nothing is stored at {path}"))
}

#[cfg(test)]
extern crate self as packhouse_generic;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
