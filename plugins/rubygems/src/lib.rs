//! Format plugin for RubyGems. It serves the compact index that gem and Bundler read, the older
//! indexes in Ruby's Marshal format, and the requests that push and yank gems.
//!
//! The plugin reads the specification of a gem from its archive, and renders indexes from records.
//! The page docs/clients/rubygems.md lists the supported requests and explains the plugin's
//! behaviour.

mod account;
mod archive;
mod clients;
mod compact;
mod delete;
mod documents;
mod files;
mod gems;
mod marshal;
mod name;
mod present;
mod proxy;
mod push;
mod quick;
mod records;
mod retention;
mod spec;
mod specs;
mod upkeep;
mod version;
mod versions;

use packhouse_sdk::{Authorization, Description, Failure, Format, Router, SentencePlace};

/// Largest gem, in bytes: 1 GiB.
const FILE_LIMIT: u64 = 1 << 30;

/// The format plugin. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct RubyGems;

impl Format for RubyGems {
    fn describe() -> Description {
        Description::new("rubygems", env!("CARGO_PKG_VERSION"))
            .ecosystem("RubyGems")
            .purl("gem", "/")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            .authorization(&[Authorization::Basic, Authorization::Bearer, Authorization::Bare])
            .open_requests(&[])
            // `gem` prints the body of an error unchanged.
            .sentence_clients(&["RubyGems/", "Ruby, RubyGems/"], &SentencePlace::Body)
            .upstream_credentials(&["basic"])
            .request_headers(&["user-agent", "if-none-match"])
            .clients(clients::clients())
            .install(clients::install())
            .counted_files(&["gems/*.gem"])
            .max_file_bytes(FILE_LIMIT)
    }

    fn routes(router: &mut Router) {
        router.get("/", documents::plan_many, documents::root);
        router.get("/versions", documents::plan_many, documents::versions);
        router.get("/names", documents::plan_many, documents::names);
        router.get("/info/{name}", documents::plan_info, documents::info);
        router.get("/specs.4.8.gz", documents::plan_many, specs::released);
        router.get("/latest_specs.4.8.gz", documents::plan_many, specs::latest);
        router.get("/prerelease_specs.4.8.gz", documents::plan_many, specs::prerelease);
        router.get("/quick/Marshal.4.8/{file}", files::plan, quick::get);
        router.get("/gems/{file}", files::plan, files::get);
        router.delete("/gems/{file}", delete::plan_file, delete::file);
        router.post("/api/v1/gems", push::plan, push::post);
        router.delete("/api/v1/gems/yank", delete::plan_yank, delete::yank);
        router.get("/api/v1/api_key", documents::plan_many, account::api_key);
        router.post("/api/v1/api_key", documents::plan_many, account::api_key);
    }
}

packhouse_sdk::export!(RubyGems, upkeep, present, retention, versions);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same gem")
}

#[cfg(test)]
extern crate self as packhouse_rubygems;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
