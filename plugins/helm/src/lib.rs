//! Format plugin for Helm's classic chart repositories. It serves `index.yaml`, the charts in it,
//! and the API of ChartMuseum, which `helm cm-push` and curl use to publish.
//!
//! The plugin reads the metadata of a chart from its archive, never from its file name. The page
//! docs/clients/helm.md lists the supported requests and explains the plugin's behaviour.

mod api;
mod archive;
mod block_yaml;
mod chart;
mod clients;
mod delete;
mod files;
mod index;
mod listed;
mod listing;
mod media_types;
mod name;
mod present;
mod provenance;
mod proxy;
mod records;
mod retention;
mod upkeep;
mod upload;
mod upstream_index;
mod yaml;

use packhouse_sdk::{Description, Failure, Format, Router, SentencePlace};

/// The largest chart, in bytes. Helm itself unpacks at most 100 MiB.
const FILE_LIMIT: u64 = 100 << 20;

/// The format plugin. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Helm;

impl Format for Helm {
    fn describe() -> Description {
        Description::new("helm", env!("CARGO_PKG_VERSION"))
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["keep_untagged"])
            .open_requests(&[])
            // Helm shows only the status line, not the body.
            .sentence_clients(&["Helm/"], &SentencePlace::Reason)
            .upstream_credentials(&["basic", "bearer"])
            .clients(clients::clients())
            .install(clients::install())
            .counted_files(&["*.tgz"])
            .max_file_bytes(FILE_LIMIT)
            .max_body_bytes(upload::FORM_LIMIT)
    }

    fn routes(router: &mut Router) {
        router.get("/", api::plan_many, api::root);
        router.get("/index.yaml", api::plan_many, index::get);
        router.get("/charts/{file}", files::plan, files::get);
        router.put("/charts/{file}", upload::plan_put, upload::put);
        router.delete("/charts/{file}", delete::plan_file, delete::file);
        router.get("/api/charts", api::plan_many, api::all);
        router.post("/api/charts", upload::plan_post, upload::post);
        router.post("/api/prov", upload::plan_provenance, upload::post_provenance);
        router.get("/api/charts/{name}", api::plan, api::versions);
        router.get("/api/charts/{name}/{version}", api::plan, api::version);
        router.delete("/api/charts/{name}/{version}", delete::plan, delete::version);
        router.get("/{file}", files::plan, files::get);
        router.put("/{file}", upload::plan_put, upload::put);
        router.delete("/{file}", delete::plan_file, delete::file);
    }
}

packhouse_sdk::export!(Helm, upkeep, present, retention);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same chart")
}

#[cfg(test)]
extern crate self as packhouse_helm;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
