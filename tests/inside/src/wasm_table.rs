//! Runs the formats' protocol tables through the real components, the runtime and a store. The
//! answers must equal those of the same formats compiled into the test.

#[path = "../../../plugins/cargo/tests/table.rs"]
mod cargo;
use crate::chart;
#[path = "../../../plugins/composer/tests/table.rs"]
mod composer;
use crate::gem;
#[path = "../../../plugins/generic/tests/table.rs"]
mod generic;
#[path = "../../../plugins/go/tests/table.rs"]
mod go;
#[path = "../../../plugins/helm/tests/table.rs"]
mod helm;
#[path = "../../../plugins/maven/tests/table.rs"]
mod maven;
#[path = "../../../plugins/npm/tests/table.rs"]
mod npm;
#[path = "../../../plugins/oci/tests/table.rs"]
mod oci;
#[path = "../../../plugins/python/tests/table/mod.rs"]
mod python;
#[path = "../../../plugins/rubygems/tests/table.rs"]
mod rubygems;
use super::wasm_world;
use crate::wheel;
use crate::zip;

use packhouse_cargo::Cargo;
use packhouse_composer::Composer;
use packhouse_generic::Generic;
use packhouse_go::Go;
use packhouse_helm::Helm;
use packhouse_maven::Maven;
use packhouse_npm::Npm;
use packhouse_oci::Oci;
use packhouse_python::Python;
use packhouse_rubygems::RubyGems;
use serde_json::json;
use wasm_world::{in_both_worlds, judged, planned};

#[test]
fn mavens_table_holds_in_both_worlds() {
    in_both_worlds::<Maven>(&json!({"redeploy": "deny"}), &maven::cases());
}

#[test]
fn mavens_table_of_identical_redeploys_holds_in_both_worlds() {
    in_both_worlds::<Maven>(&json!({"redeploy": "identical"}), &maven::identical());
}

#[test]
fn the_table_of_images_holds_in_both_worlds() {
    in_both_worlds::<Oci>(&json!({"keep_untagged": true}), &oci::cases());
}

#[test]
fn the_table_of_pythons_index_holds_in_both_worlds() {
    in_both_worlds::<Python>(&json!({}), &python::cases());
}

#[test]
fn the_tables_of_its_other_settings_hold_in_both_worlds() {
    in_both_worlds::<Python>(&json!({"redeploy": "identical"}), &python::identical());
    in_both_worlds::<Python>(&json!({"republish_deleted": true}), &python::republished());
}

#[test]
fn the_table_of_packages_holds_in_both_worlds() {
    in_both_worlds::<Npm>(&json!({"republish_deleted": false}), &npm::cases());
}

#[test]
fn the_tables_of_files_hold_in_both_worlds() {
    in_both_worlds::<Generic>(&json!({"overwrite": false}), &generic::cases());
    in_both_worlds::<Generic>(&json!({"overwrite": true}), &generic::overwriting());
    in_both_worlds::<Generic>(&json!({"overwrite": false, "redeploy": "identical"}), &generic::identical());
}

#[test]
fn the_tables_of_crates_hold_in_both_worlds() {
    in_both_worlds::<Cargo>(&json!({}), &cargo::cases());
    in_both_worlds::<Cargo>(&json!({"redeploy": "identical"}), &cargo::identical());
}

#[test]
fn the_tables_of_modules_hold_in_both_worlds() {
    in_both_worlds::<Go>(&json!({}), &go::cases());
    in_both_worlds::<Go>(&json!({"redeploy": "identical"}), &go::identical());
}

#[test]
fn the_tables_of_charts_hold_in_both_worlds() {
    in_both_worlds::<Helm>(&json!({}), &helm::cases());
    in_both_worlds::<Helm>(&json!({"redeploy": "identical"}), &helm::identical());
    in_both_worlds::<Helm>(&json!({"republish_deleted": true}), &helm::republished());
}

#[test]
fn the_tables_of_gems_hold_in_both_worlds() {
    in_both_worlds::<RubyGems>(&json!({}), &rubygems::cases());
    in_both_worlds::<RubyGems>(&json!({"redeploy": "identical"}), &rubygems::identical());
    in_both_worlds::<RubyGems>(&json!({"republish_deleted": true}), &rubygems::republished());
}

#[test]
fn the_tables_of_composers_packages_hold_in_both_worlds() {
    in_both_worlds::<Composer>(&json!({}), &composer::cases());
    in_both_worlds::<Composer>(&json!({"redeploy": "identical"}), &composer::identical());
    in_both_worlds::<Composer>(&json!({"republish_deleted": true}), &composer::republished());
}

#[test]
fn composers_component_orders_versions_and_plans_requests() {
    let (prerelease, places) =
        judged("composer", &["1.0", "1.0-beta1", "dev-main", "x", "v1.0.0.0", "1.x-dev"]);
    assert_eq!(prerelease, [Some(false), Some(true), Some(true), None, Some(false), Some(true)]);
    assert_eq!(places, [Some(1), Some(0), None, None, Some(1), Some(2)]);
    let requests = [
        ("GET", "/p2/acme/demo~dev.json"),
        ("GET", "/dists/acme/demo/1.0.zip"),
        ("GET", "/packages.json"),
        ("PUT", "/"),
    ];
    let plans = planned("composer", &requests);
    assert_eq!(plans[0].packages, ["acme/demo"]);
    assert_eq!(plans[1].packages, ["acme/demo"]);
    assert!(plans[2].many_packages);
    assert_eq!(plans[3].digests.len(), 1);
}
