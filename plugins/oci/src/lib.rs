//! The format plugin for container images and other artifacts. It implements the OCI distribution
//! specification 1.1 for clients such as docker, podman, skopeo, crane, oras and helm. The server
//! offers the protocol under `/v2/`, and under `v2/` below each repository's own address.
//!
//! Manifests are stored byte for byte and found by their digest. Tags, referrers and the parts of
//! an index are records that refer to manifests. docs/clients/oci.md describes the requests and the
//! design decisions.

mod answer;
mod clients;
mod delete;
mod errors;
mod failure;
mod layers;
mod manifest;
mod manifests;
mod name;
mod present;
mod proxy;
mod publish;
mod records;
mod referrers;
mod retention;
mod root;
mod settings;
mod statements;
mod tags;
mod untagged;
mod upkeep;
mod uploads;

use packhouse_sdk::{
    Challenge, Claim, Description, Failure, Folding, Format, Router, SentencePlace, Setting, TokenService,
};

/// Bytes of the largest layer: 50 GB.
const LAYER_LIMIT: u64 = 50_000_000_000;
/// Bytes of the largest manifest: 4 MiB.
const MANIFEST_LIMIT: u64 = 4 << 20;

/// The format. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Oci;

impl Format for Oci {
    fn describe() -> Description {
        Description::new("docker", env!("CARGO_PKG_VERSION"))
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["redeploy", "republish_deleted"])
            .follows_redirects()
            .errors(errors::template())
            .challenge(Challenge::Bearer)
            .token_service(TokenService::new("/v2/token"))
            .upstream_credentials(&["basic", "bearer"])
            .name_folding(Folding::Lowercase)
            // The host lists only tags, but an image with manifests exists even without a tag.
            .held_by("m/{name}:")
            .record_of_tag("t/", ":", "digest")
            .request_headers(&["transfer-encoding"])
            .open_requests(&[])
            // These clients print the body of a 4xx response, but only the status line of other
            // errors.
            .sentence_clients(&["skopeo/", "containers/", "libpod/", "buildah/"], &SentencePlace::Reason)
            .clients(clients::clients())
            .install(clients::install())
            .counted_files(&["*/manifests/*"])
            .max_file_bytes(LAYER_LIMIT)
            .max_manifest_bytes(MANIFEST_LIMIT)
            .limit_with("manifest", MANIFEST_LIMIT, errors::too_large_manifest())
            .claim(
                Claim::new("image", "/v2/repositories/{repository}/")
                    .challenge("repository:repositories/{repository}/{subject}:{action}"),
            )
            .claim(Claim::new("root", "/v2/"))
            .setting(
                settings::LIBRARY_PREFIX,
                Setting::choice(
                    &["auto", "always", "never"],
                    "Whether an image with a name of one part is requested as library/IMAGE; auto: if the upstream is Docker Hub",
                )
                .title("Prefix library/")
                .repository_kinds(&["proxy"]),
            )
    }

    fn routes(router: &mut Router) {
        router.claim("root", root::routes);
        router.claim("image", image_routes);
        // Each repository is also a registry of its own, so that it can be a mirror for dockerd. A
        // mirror gets dockerd's requests without the name of the repository.
        router.below("v2", |router| {
            root::registry_routes(router);
            image_routes(router);
        });
    }
}

/// Adds the routes of a repository's images.
fn image_routes(router: &mut Router) {
    router.get("/{image..}/manifests/{reference}", manifests::plan, manifests::get);
    router.put("/{image..}/manifests/{reference}", publish::plan, publish::put);
    router.delete("/{image..}/manifests/{reference}", delete::plan, delete::delete);
    for uploads in ["/{image..}/blobs/uploads/", "/{image..}/blobs/uploads"] {
        router.post(uploads, uploads::plan_begin, uploads::begin);
    }
    let upload = "/{image..}/blobs/uploads/{upload}";
    router.get(upload, uploads::plan_status, uploads::status);
    router.patch(upload, uploads::plan_add, uploads::add);
    router.put(upload, uploads::plan_finish, uploads::finish);
    router.delete(upload, uploads::plan_cancel, uploads::cancel);
    router.get("/{image..}/blobs/{digest}", layers::plan, layers::get);
    router.get("/{image..}/tags/list", tags::plan, tags::list);
    router.get("/{image..}/referrers/{digest}", referrers::plan, referrers::list);
    root::refuse_the_rest(router);
}

packhouse_sdk::export!(Oci, upkeep, present, retention);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::new(503, "UNAVAILABLE", "other requests are changing the same image; try again")
        .header("retry-after", "1")
}

#[cfg(test)]
extern crate self as packhouse_oci;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
