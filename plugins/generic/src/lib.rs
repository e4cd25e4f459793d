//! Files under any path as a format plugin: whatever is no package of another format, with `PUT`, `GET` and `DELETE`.
//!
//! A folder is a package, and each file in it a version: so retention, search and claims work by folder. docs/formats/generic.md says
//! what is served and what was decided.

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

/// Bytes of the largest file: 50 GB.
const FILE_LIMIT: u64 = 50_000_000_000;

/// The format. It holds nothing.
#[derive(Clone, Copy, Debug)]
pub struct Generic;

impl Format for Generic {
    fn describe() -> Description {
        Description::new("generic", env!("CARGO_PKG_VERSION"))
            .kinds(&["hosted", "proxy", "group"])
            .upstream_credentials(&["basic"])
            .request_headers(&checksum::HEADERS)
            .open_requests(&[])
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .setting(
                "overwrite",
                Setting::boolean(false, "Whether a file that is there may be replaced by another"),
            )
            .setting(
                "immutable",
                Setting::boolean(
                    false,
                    "Of a proxy: whether a file of the upstream never changes, and is fetched once",
                ),
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

/// What a change ends with that others were faster than each time.
fn busy() -> Failure {
    Failure::busy("the same file")
}

/// 404 for a path at which nothing is stored.
fn missing(path: &str) -> Failure {
    Failure::not_found(format!("Nothing is stored at {path}"))
}

#[cfg(test)]
extern crate self as packhouse_generic;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
