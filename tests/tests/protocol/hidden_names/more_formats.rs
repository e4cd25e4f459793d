//! Hosted crates, modules and files. Each format runs the steps of `scheme`.

use super::HiddenNamesFixture;
use super::scheme::{Scheme, run};
use packhouse_tests::digests;
use packhouse_tests::upstream::Answer;
use serde_json::json;

use crate::a_crate;

/// Returns the path in the index of a crate whose name is longer than three letters.
fn page(name: &str) -> String {
    format!("{}/{}/{name}", &name[..2], &name[2..4])
}

/// Offers a crate at the upstream: its page in the index and its file.
fn offer_crate(world: &HiddenNamesFixture, name: &str) {
    let bytes = format!("{name} 99.0.0");
    let line = json!({
        "name": name, "vers": "99.0.0", "deps": [], "features": {}, "yanked": false, "cksum": digests::sha256(bytes.as_bytes()),
    });
    world.upstream.on(&format!("/{}", page(name)), Answer::ok(line.to_string()));
    let config = json!({"dl": format!("{}/files", world.upstream.url())});
    world.upstream.on("/config.json", Answer::ok(config.to_string()));
    world.upstream.on(&format!("/files/{name}/99.0.0/download"), Answer::ok(bytes));
}

#[test]
fn a_hosted_crate_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "cargo",
        offer: &offer_crate,
        publish: &|world, name| {
            let sent = a_crate::ACrate::new(name, "1.0.0").body();
            world.owner.put("/repositories/own/api/v1/crates/new", sent).expect(200);
        },
        withdraw: &|world, name| world.remove(name, "1.0.0"),
        paths: &|_, name| {
            let file = format!("/repositories/all/api/v1/crates/{name}/99.0.0/download");
            vec![format!("/repositories/all/{}", page(name)), file]
        },
        // The server normalizes names, so a claim may use any spelling.
        claim: &|name| format!("{}{}*", name[..1].to_uppercase(), &name[1..]),
    });
}

#[test]
fn another_spelling_of_a_hosted_crate_is_hidden_as_well() {
    let world = HiddenNamesFixture::new("cargo");
    for name in ["our_own", "our-own"] {
        offer_crate(&world, name);
    }
    let sent = a_crate::ACrate::new("our_own", "1.0.0").body();
    world.owner.put("/repositories/own/api/v1/crates/new", sent).expect(200);
    for (who, client) in world.without_access() {
        for name in ["our_own", "our-own", "OUR-OWN"] {
            for path in [page(&name.to_lowercase()), format!("api/v1/crates/{name}/99.0.0/download")] {
                let answer = client.get(&format!("/repositories/all/{path}"));
                assert_eq!(answer.status, 404, "{who}: {path}: {}", answer.text());
            }
        }
    }
    assert_eq!(world.upstream_requests("our"), 0, "{:?}", world.upstream.requests());
}

#[test]
fn a_hosted_module_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "go",
        offer: &|world, name| {
            let at = |rest: &str| format!("/example.com/{name}/{rest}");
            let info = json!({"Version": "v1.99.0", "Time": "2015-01-05T10:00:00Z"}).to_string();
            world.upstream.on(&at("@v/list"), Answer::ok("v1.99.0\n"));
            world.upstream.on(&at("@latest"), Answer::ok(info.clone()));
            world.upstream.on(&at("@v/v1.99.0.info"), Answer::ok(info.clone()));
            world.upstream.on(&at("@v/main.info"), Answer::ok(info));
            world.upstream.on(&at("@v/v1.99.0.mod"), Answer::ok(format!("module example.com/{name}\n")));
            world.upstream.on(&at("@v/v1.99.0.zip"), Answer::ok("zip"));
            let lookup = format!("/sumdb/sum.golang.org/lookup/example.com/{name}@v1.99.0");
            world.upstream.on(&lookup, Answer::ok("a record of 99.0"));
        },
        publish: &|world, name| {
            let file = format!("example.com/{name}@v1.0.0/a.go");
            let zip = crate::wheel::zip(&[(file.as_str(), b"package a")]);
            world.owner.put(&format!("/repositories/own/example.com/{name}/@v/v1.0.0.zip"), zip).expect(201);
        },
        withdraw: &|world, name| world.remove(&format!("example.com/{name}"), "v1.0.0"),
        paths: &|_, name| {
            let files = ["list", "v1.99.0.info", "v1.99.0.mod", "v1.99.0.zip", "main.info"];
            let mut paths: Vec<String> =
                files.iter().map(|file| format!("/repositories/all/example.com/{name}/@v/{file}")).collect();
            paths.push(format!("/repositories/all/example.com/{name}/@latest"));
            paths.push(format!("/repositories/all/sumdb/sum.golang.org/lookup/example.com/{name}@v1.99.0"));
            paths
        },
        claim: &|name| format!("example.com/{name}"),
    });
}

#[test]
fn a_hosted_folder_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "generic",
        offer: &|world, name| {
            world.upstream.on(&format!("/{name}/tool-99.0"), Answer::ok("theirs 99.0"));
            let page = json!({"path": format!("/{name}/"), "next": null,
                "entries": [{"name": "tool-99.0", "kind": "file", "size": 11, "modified": 0}]});
            let page = Answer::ok(page.to_string()).header("Content-Type", "application/json");
            world.upstream.on(&format!("/{name}/?limit=500&after="), page);
        },
        publish: &|world, name| {
            world.owner.put(&format!("/repositories/own/{name}/tool-1.0"), "ours").expect(201);
        },
        withdraw: &|world, name| world.remove(name, "tool-1.0"),
        paths: &|_, name| {
            let file = format!("/repositories/all/{name}/tool-99.0");
            vec![format!("{file}.sha256"), file]
        },
        claim: &|name| name.to_owned(),
    });
}

#[test]
fn a_list_omits_hosted_names_of_an_upstream() {
    let world = HiddenNamesFixture::new("generic");
    let page = json!({"path": "/", "next": null,
        "entries": [{"name": "ours", "kind": "folder"}, {"name": "theirs", "kind": "folder"}]});
    let page = Answer::ok(page.to_string()).header("Content-Type", "application/json");
    world.upstream.on("/?limit=500&after=", page);
    world.owner.put("/repositories/own/ours/tool", "ours").expect(201);
    for (who, client) in world.without_access() {
        let list = client.get("/repositories/all/").expect(200).text();
        assert!(list.contains("theirs/") && !list.contains("ours/"), "{who}: {list}");
    }
}
