//! The Maven 2 repository layout as a format plugin: Maven, Gradle, sbt and everything else that speaks it.
//!
//! Files are taken as they are. What a client would have to keep right by itself is made from them: checksums,
//! `maven-metadata.xml`, listings. docs/formats/maven.md says what is served and what was decided.

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

/// Bytes of the largest file: 50 GB.
const FILE_LIMIT: u64 = 50_000_000_000;

/// Clients that show the status line and no body, by the start of their `User-Agent`.
const SHOW_REASON: [&str; 5] = ["Apache-Maven/", "Gradle/", "Leiningen/", "Apache Ivy/", "Coursier/"];

/// The format. It holds nothing.
#[derive(Clone, Copy, Debug)]
pub struct Maven;

impl Format for Maven {
    fn describe() -> Description {
        Description::new("maven", env!("CARGO_PKG_VERSION"))
            .ecosystem("Maven")
            .purl("maven", ":")
            .kinds(&["hosted", "proxy", "group"])
            .file_dates()
            .checks_username()
            .open_requests(&[])
            // Most of its clients show the status line and no body.
            .sentence_as_reason()
            .sentence_clients(&SHOW_REASON, &SentencePlace::Reason)
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .setting(
                "redeploy",
                Setting::choice(
                    &["deny", "identical"],
                    "Whether a file that is there already may be put again when its bytes are the same",
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

/// What a change ends with that others were faster than each time.
fn busy() -> Failure {
    Failure::busy("the same files")
}

#[cfg(test)]
extern crate self as packhouse_maven;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
