//! Format plugin for the Maven 2 repository layout, which Maven, Gradle, sbt and other tools use.
//!
//! The plugin stores files unchanged. It generates checksums, `maven-metadata.xml` and listings
//! from the stored files, so clients need not keep these documents correct. The page
//! docs/clients/maven.md describes the requests and the design decisions.

mod answer;
mod archetypes;
mod checksum;
mod clients;
mod delete;
mod fetch;
mod group;
mod hosted;
mod index;
mod layout;
mod licence;
mod listing;
mod many_versions;
mod media;
mod metadata;
mod pom;
mod present;
mod proxy;
mod publish;
mod records;
mod retention;
mod snapshot;
mod statements;
mod sums;
mod upkeep;
mod version;
mod versions;

use packhouse_sdk::{Description, Failure, Format, Router, SentencePlace, Setting};

/// Largest file, in bytes: 50 GB.
const FILE_LIMIT: u64 = 50_000_000_000;

/// Clients that show only the status line of an error, by the start of their `User-Agent`.
const SHOW_REASON: [&str; 5] = ["Apache-Maven/", "Gradle/", "Leiningen/", "Apache Ivy/", "Coursier/"];

/// The format. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Maven;

impl Format for Maven {
    fn describe() -> Description {
        Description::new("maven", env!("CARGO_PKG_VERSION"))
            .ecosystem("Maven")
            .purl("maven", ":")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["republish_deleted", "keep_untagged"])
            .file_dates()
            .checks_username()
            .open_requests(&[])
            // Most clients show only the status line of an error.
            .sentence_as_reason()
            .sentence_clients(&SHOW_REASON, &SentencePlace::Reason)
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .setting(
                "redeploy",
                Setting::choice(
                    &["deny", "identical"],
                    "An upload of a stored file is refused (deny), or accepted if it has the same bytes (identical)",
                ),
            )
            .setting(proxy::POLICY, proxy::policy_setting())
    }

    fn routes(router: &mut Router) {
        router.get("/", fetch::plan, fetch::get);
        router.get("/{path..}", fetch::plan, fetch::get);
        router.put("/", publish::plan, publish::put);
        router.put("/{path..}", publish::plan, publish::put).check(publish::check);
        router.delete("/", delete::plan, delete::delete);
        router.delete("/{path..}", delete::plan, delete::delete);
    }
}

packhouse_sdk::export!(Maven, upkeep, present, retention, versions);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same files")
}

#[cfg(test)]
extern crate self as packhouse_maven;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
