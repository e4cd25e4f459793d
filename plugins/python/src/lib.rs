//! Format plugin for Python's package index. It serves pip, twine, uv, poetry, hatch, pdm and all
//! other clients of the Simple API and the upload form.
//!
//! The plugin checks that an uploaded file's own metadata agrees with the form, and stores the file
//! unchanged. It renders indexes from records. The page docs/clients/python.md lists the supported
//! requests and explains the plugin's behaviour.

mod accept;
mod answer;
mod archive;
mod attestation;
mod clients;
mod delete;
mod file_entries;
mod filename;
mod files;
mod form;
mod index;
mod legacy;
mod listed_name;
mod metadata;
mod name;
mod part;
mod present;
mod projects;
mod proxy;
mod publisher;
mod records;
mod retention;
mod root;
mod simple;
mod sources;
mod status;
mod status_routes;
mod upkeep;
mod upload;
mod version;
mod versions;

use packhouse_sdk::{Description, Exchange, Failure, Folding, Format, Router, SentencePlace};
use serde_json::json;

/// Maximum bytes of a file: 10 GB.
const FILE_LIMIT: u64 = 10_000_000_000;

/// Start of the `User-Agent` of each client that displays the status line of an error and ignores
/// its body.
const SHOW_REASON: [&str; 4] = ["pip/", "twine/", "poetry/", "Hatch/"];

/// Exchange of an ID token for an API token at PyPI's path. uv and PyPI's publishing action use it.
fn minting() -> Exchange {
    let answer = json!({"success": true, "token": "{token}", "expires": "{expires}"});
    let refusal = json!({"message": "{message}", "errors": [{"code": "{code}", "description": "{message}"}]});
    Exchange::token("POST /_/oidc/mint-token", answer).id_token_in("token").refused(422, refusal)
}

/// Revocation of an exchanged token. Clients revoke the token when they have finished.
fn burning() -> Exchange {
    let refusal = json!({"message": "{message}", "errors": [{"code": "{code}", "description": "{message}"}]});
    let taken = Exchange::revocation("POST /_/oidc/burn-token", 202, json!({"message": "Accepted"}));
    taken.id_token_in("token").refused(422, refusal)
}

/// The format plugin. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Python;

impl Format for Python {
    fn describe() -> Description {
        Description::new("python", env!("CARGO_PKG_VERSION"))
            .ecosystem("PyPI")
            .purl("pypi", "/")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            .follows_redirects()
            .checks_username()
            .open_requests(&[])
            .sentence_clients(&SHOW_REASON, &SentencePlace::Reason)
            .trusted_publishing(&["/_/oidc/{rest..}"])
            .exchange(Exchange::audience("GET /_/oidc/audience", json!({"audience": "{audience}"})))
            .exchange(minting())
            .exchange(burning())
            .name_folding(Folding::Pep503)
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .max_body_bytes(upload::FORM_LIMIT)
    }

    fn routes(router: &mut Router) {
        router.get("/", root::plan, root::get);
        router.post("/", upload::plan, upload::post);
        router.get("/simple", simple::plan_list, simple::to_list);
        router.get("/simple/", simple::plan_list, simple::list);
        router.get("/simple/{project}", simple::plan, simple::to_project);
        router.get("/simple/{project}/", simple::plan, simple::project);
        router.get("/packages/{project}/{version}/{file}", files::plan, files::get);
        router.delete("/packages/{project}/{version}/{file}", delete::plan, delete::delete);
        router.get("/integrity/{project}/{version}/{file}/provenance", files::plan, files::provenance);
        router.get("/pypi/{project}/json", legacy::plan, legacy::project);
        router.get("/pypi/{project}/{version}/json", legacy::plan, legacy::version);
        router.get("/projects/{project}/status", simple::plan, status_routes::get);
        router.put("/projects/{project}/status", status_routes::plan, status_routes::put);
    }
}

packhouse_sdk::export!(Python, upkeep, present, retention, versions);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same project")
}

#[cfg(test)]
extern crate self as packhouse_python;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
