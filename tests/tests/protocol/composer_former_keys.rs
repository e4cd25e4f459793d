//! Composer versions whose records an earlier version of the plugin stored under other keys.

use crate::zip::package;

use packhouse_tests::repository::FormatRepository;
use packhouse_tests::{Api, Request, Server, database};
use serde_json::json;

#[test]
fn a_version_under_a_former_key_is_found() {
    let mut server = Server::start();
    let php = FormatRepository::hosted(&server, "composer", "php", &json!({}));
    let zip = package("acme/demo", "1.0-stable2", "");
    let publish = || {
        let request = Request::new("PUT", &php.path("?version=1.0-stable2"));
        php.client.send(request.body(zip.clone()))
    };
    publish().expect(201);
    server.kill9();
    for table in ["records", "record_blobs"] {
        for kind in ["v", "d"] {
            let (now, former) = (format!("{kind}/acme/demo/1.0.0.0"), format!("{kind}/acme/demo/1.0.0.02"));
            database::sqlite(&server, &format!("UPDATE {table} SET key = '{former}' WHERE key = '{now}'"));
        }
    }
    server.restart();
    let document = php.get("p2/acme/demo.json").expect(200).json();
    assert_eq!(document["packages"]["acme/demo"][0]["version"], "1.0-stable2");
    assert_eq!(php.get("dists/acme/demo/1.0-stable2.zip").expect(200).body, zip);
    assert_eq!(publish().expect(409).field("error"), "version_already_exists");
    let api = Api::sign_in(&server);
    let version = format!("/v1/repositories/{}/packages/acme%2Fdemo/versions/1.0-stable2", php.id);
    let state = json!({"state": "deprecated", "reason": ""});
    api.send("PUT", &format!("{version}/state"), &state).expect(200);
    assert_eq!(api.call("GET", &version).expect(200).json()["state"], "deprecated");
    api.call("DELETE", &version).expect(204);
    php.get("p2/acme/demo.json").expect(404);
    assert_eq!(publish().expect(409).field("error"), "version_already_exists");
}
