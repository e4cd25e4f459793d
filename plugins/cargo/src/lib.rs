//! The format plugin for cargo registries: a sparse index, the files of crates, and the API with
//! which cargo publishes, yanks and searches.
//!
//! Each version has its own record, which contains the version's line of the index. The cost of a
//! publish therefore does not depend on the number of versions. docs/clients/cargo.md describes the
//! requests and the design decisions.

mod archive;
mod body;
mod clients;
mod download;
mod index;
mod line;
mod metadata;
mod name;
mod owners;
mod proxy;
mod publish;
mod records;
mod remove;
mod search;
mod search_results;
mod upkeep;
mod versions;
mod withdrawn;
mod yank;

use packhouse_sdk::{
    Authorization, Description, ErrorTemplate, Exchange, Failure, Folding, Format, Plan, Router,
};
use serde_json::json;

/// Bytes of the largest crate file: 210 MB.
const FILE_LIMIT: u64 = 210_000_000;

/// The exchange of an ID token for a registry token, as on crates.io. Some CI actions send the
/// request with `PUT`, others with `POST`.
fn exchange(method: &str) -> Exchange {
    let request = format!("{method} /api/v1/trusted_publishing/tokens");
    let refusal = json!({"errors": [{"detail": "{message}"}]});
    Exchange::token(request, json!({"token": "{token}"})).id_token_in("jwt").refused(400, refusal)
}

/// The revocation of the registry token. At the end of a job, the CI action sends this request with
/// the token. It expects a response without a body.
fn revocation() -> Exchange {
    Exchange::revocation("DELETE /api/v1/trusted_publishing/tokens", 204, json!({}))
}

/// The format. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Cargo;

impl Format for Cargo {
    fn describe() -> Description {
        // Cargo prints `errors[].detail` of every refused request.
        let errors =
            ErrorTemplate::new(json!({"errors": "{problems}"})).problem(json!({"detail": "{message}"}));
        Description::new("cargo", env!("CARGO_PKG_VERSION"))
            .ecosystem("crates.io")
            .purl("cargo", "/")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            .follows_redirects()
            .errors(errors)
            // Cargo sends its token without a scheme.
            .authorization(&[Authorization::Bare, Authorization::Bearer, Authorization::Basic])
            .upstream_credentials(&["basic", "bearer"])
            .open_requests(&[])
            .exchange(exchange("PUT"))
            .exchange(exchange("POST"))
            .exchange(revocation())
            .name_folding(Folding::Pep503)
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .max_body_bytes(body::LIMIT)
    }

    fn routes(router: &mut Router) {
        router.get("/config.json", index::plan_config, index::config);
        router.get("/api/v1/crates", Plan::read_many, search::search);
        router.put("/api/v1/crates/new", publish::plan, publish::put);
        router.get("/api/v1/crates/{name}/owners", Plan::read_many, owners::list);
        router.put("/api/v1/crates/{name}/owners", Plan::publish, owners::refuse);
        router.delete("/api/v1/crates/{name}/owners", Plan::publish, owners::refuse);
        router.get("/api/v1/crates/{name}/{version}/download", download::plan, download::get);
        router.delete("/api/v1/crates/{name}/{version}/yank", yank::plan, yank::yank);
        router.put("/api/v1/crates/{name}/{version}/unyank", yank::plan, yank::unyank);
        router.get("/{first}/{name}", index::plan, index::get);
        router.get("/{first}/{second}/{name}", index::plan, index::get);
    }
}

packhouse_sdk::export!(Cargo, upkeep, present, retention, versions);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same crate")
}

#[cfg(test)]
extern crate self as packhouse_cargo;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
