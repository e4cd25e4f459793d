//! Format plugin for Composer. It serves `packages.json`, the metadata of each package in
//! Composer 2's minified form, the zips of the versions, and the advisories for `composer audit`.
//!
//! The plugin reads the metadata of a package from the `composer.json` of its zip. The page
//! docs/clients/composer.md lists the requests and explains the design decisions.

mod advisory;
mod archive;
mod audit;
mod clients;
mod delete;
mod dists;
mod documents;
mod form;
mod members;
mod metadata;
mod name;
mod package;
mod present;
mod proxy;
mod records;
mod retention;
mod upkeep;
mod upload;
mod upstream;
mod upstream_metadata;
mod version;
mod versions;

use packhouse_sdk::{Description, Failure, Folding, Format, Router, SentencePlace};

/// The size limit of a zip, in bytes: 1 GiB.
const FILE_LIMIT: u64 = 1 << 30;
/// The size limit of a form with a zip, in bytes.
const FORM_LIMIT: u64 = FILE_LIMIT + (1 << 20);

/// The format. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Composer;

impl Format for Composer {
    fn describe() -> Description {
        Description::new("composer", env!("CARGO_PKG_VERSION"))
            .ecosystem("Packagist")
            .purl("composer", "/")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            .open_requests(&[])
            // Composer shows users only the status line of an error, not its body.
            .sentence_clients(&["Composer/"], &SentencePlace::Reason)
            .upstream_credentials(&["basic", "bearer"])
            .name_folding(Folding::Lowercase)
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .max_body_bytes(FORM_LIMIT)
    }

    fn routes(router: &mut Router) {
        router.get("/", documents::plan_many, documents::root);
        router.put("/", upload::plan, upload::upload);
        router.post("/", upload::plan, upload::upload);
        router.get("/packages.json", documents::plan_many, documents::packages);
        router.get("/p2/{vendor}/{file}", metadata::plan, metadata::get);
        router.get("/packages/list.json", documents::plan_many, documents::list);
        router.get("/search.json", documents::plan_many, documents::search);
        router.post("/downloads", documents::plan_notify, documents::notify);
        router.get("/security-advisories", documents::plan_many, audit::advisories);
        router.post("/security-advisories", audit::plan, audit::advisories);
        router.get("/dists/{vendor}/{package}/{file..}", dists::plan, dists::get);
        router.put("/packages/upload/{vendor}/{package}/{version..}", upload::plan_named, upload::upload);
        router.put("/{file}", upload::plan_file, upload::upload);
        router.delete("/packages/{vendor}/{package}/{version..}", delete::plan, delete::version);
    }
}

packhouse_sdk::export!(Composer, upkeep, present, retention, versions);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same package")
}

#[cfg(test)]
extern crate self as packhouse_composer;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
