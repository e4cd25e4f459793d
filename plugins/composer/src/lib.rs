//! Composer repositories as a format plugin: `packages.json`, the metadata of each package in Composer 2's minified form, and the zips
//! that it names.
//!
//! What a package says of itself is read from the `composer.json` of its zip. docs/formats/composer.md says what is served and what was
//! decided.

mod archive;
mod clients;
mod delete;
mod dists;
mod documents;
mod found;
mod metadata;
mod minify;
mod name;
mod package;
mod present;
mod proxy;
mod records;
mod retention;
mod upkeep;
mod upload;
mod upstream_metadata;
mod version;
mod versions;

use packhouse_sdk::{Description, Failure, Folding, Format, Router};

/// Bytes of the largest zip: 1 GiB.
const FILE_LIMIT: u64 = 1 << 30;

/// The format. It holds nothing.
#[derive(Clone, Copy, Debug)]
pub struct Composer;

impl Format for Composer {
    fn describe() -> Description {
        Description::new("composer", env!("CARGO_PKG_VERSION"))
            .ecosystem("Packagist")
            .purl("composer", "/")
            .kinds(&["hosted", "proxy", "group"])
            .open_requests(&[])
            .upstream_credentials(&["basic", "bearer"])
            .name_folding(Folding::Lowercase)
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .max_body_bytes(upload::FORM_LIMIT)
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
        router.get("/dists/{vendor}/{package}/{file}", dists::plan, dists::get);
        router.put("/packages/upload/{vendor}/{package}/{version}", upload::plan_named, upload::upload);
        router.put("/{file}", upload::plan_file, upload::upload);
        router.delete("/packages/{vendor}/{package}/{version}", delete::plan, delete::delete);
    }
}

packhouse_sdk::export!(Composer, upkeep, present, retention, versions);

/// What a change ends with that others were faster than each time.
fn busy() -> Failure {
    Failure::busy("the same package")
}
