//! What a proxy's list leaves out, as people read it: npm prints the packument's restriction, pip and uv the reason of a yank, and whoever has
//! the address from a lock file the refusal of the file. A version that passes is taken instead where it will do.

use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};

use super::clients::flat;
use super::{enforced, except, wheel};
use crate::release::Release;

/// An upstream with `lib` in two versions, and a server in which a policy of the test's own denies the second.
struct World {
    far: Server,
    near: Server,
    api: Api,
}

impl World {
    fn start() -> World {
        let (far, near) = (
            Server::start(),
            Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start(),
        );
        let api = Api::sign_in(&near);
        World { far, near, api }
    }

    fn public() -> Value {
        json!({"kind": "hosted", "settings": {"public": true}})
    }
}

/// Holds back what is younger than a year, which is all that was published just now, but for the first version.
fn hold(api: &Api, first: &str) -> String {
    let id = enforced(api, "least-age", json!({"hours": 24 * 365}), json!("*"));
    let body = json!({"package": "lib", "version": first, "reason": "seen and accepted", "until": super::in_an_hour()});
    api.post(&format!("/v1/policies/{id}/exceptions"), &body).expect(201);
    id
}

#[test]
fn npm_prints_why_a_version_is_left_out() {
    let world = World::start();
    let far = NpmRepository::create_as(&world.far, "npm", &World::public());
    for version in ["1.0.0", "1.1.0"] {
        far.put("lib", &Release::new("lib", version).document()).expect(201);
    }
    // Which `lib` needs.
    far.put("dep", &Release::new("dep", "1.0.0").document()).expect(201);
    let kind = json!({"kind": "proxy", "upstream": {"url": far.url(&world.far)}});
    let proxy = NpmRepository::create_as(&world.near, "npm", &kind);
    let locked = |js: &Js| {
        js.package(
            "locked",
            &json!({"name": "locked", "version": "1.0.0", "dependencies": {"lib": "1.1.0"}}),
        );
        js.install("locked")
    };
    let start = |tool| match Js::new(tool, &proxy.url(&world.near), &proxy.token.secret) {
        Ok(js) => Some(js),
        Err(reason) => {
            skip("npm", &reason);
            None
        }
    };
    let (Some(ten), Some(eleven)) = (start(Tool::Npm10), start(Tool::Npm11)) else { return };
    locked(&eleven).well();
    let id = hold(&world.api, "1.0.0");
    except(&world.api, &id, "dep");
    for (js, name) in [(&ten, "ten"), (&eleven, "eleven")] {
        let project = |folder: &str, range: &str| {
            let folder = format!("{name}-{folder}");
            js.package(&folder, &json!({"name": folder, "version": "1.0.0", "dependencies": {"lib": range}}));
            (js.install(&folder), folder)
        };
        let words = "lib 1.1.0 is younger than 8760 h";
        let said = project("exact", "1.1.0").0.refused("E403");
        assert!(said.text.contains(words) && said.text.contains("(policy ours)"), "{}", said.text);
        let (said, folder) = project("range", "^1.0.0");
        said.well();
        assert_eq!(js.installed(&folder, "lib").as_deref(), Some("1.0.0"), "another will do");
        project("narrow", "~1.1.0").0.refused(words);
    }
    // Who has the tarball's address asks for the file itself.
    eleven.forget("locked");
    let said = eleven.install_locked("locked").refused("403");
    assert!(said.text.contains("lib 1.1.0 is younger than 8760 h"), "{}", said.text);
    except(&world.api, &id, "lib");
    eleven.forget("locked");
    eleven.install_locked("locked").well();
}

#[test]
fn pip_and_uv_print_why_a_file_is_left_out() {
    let world = World::start();
    let far = PythonRepository::create_as(&world.far, "py", &World::public());
    for version in ["1.0", "1.1"] {
        let name = wheel::wheel_name("lib", version);
        far.publish("lib", version, &name, &wheel::wheel("lib", version, "")).expect(200);
    }
    let proxy = PythonRepository::proxy(&world.near, "py", &far.url, &json!({}));
    hold(&world.api, "1.0");
    let index = proxy.index_of(&proxy.token.secret);
    let words = "lib 1.1 is younger than 8760 h";
    match Home::with("pip") {
        Err(reason) => skip("pip", &reason),
        Ok(home) => {
            let install = |wanted: &str| {
                let arguments = [
                    "install",
                    "--no-cache-dir",
                    "--target",
                    "site",
                    "--upgrade",
                    "--index-url",
                    &index,
                    wanted,
                ];
                home.run("", "pip", &arguments, &[])
            };
            let said = install("lib==1.1").refused("403");
            assert!(said.text.contains(words) && said.text.contains("(policy ours)"), "{}", said.text);
            // pip names what it passes by.
            install("lib>1.0").refused("Ignored the following yanked versions: 1.1");
            install("lib").well();
            assert!(home.folder().join("site/lib-1.0.dist-info").is_dir());
        }
    }
    match Home::with("uv") {
        Err(reason) => skip("uv", &reason),
        Ok(home) => {
            let install = |wanted: &str| {
                let arguments =
                    ["pip", "install", "--no-cache", "--target", "site", "--default-index", &index, wanted];
                home.run("", "uv", &arguments, &[])
            };
            let said = install("lib>1.0").refused("yanked");
            assert!(flat(&said.text).contains(words), "{}", said.text);
            install("lib==1.1").refused("403");
            install("lib").well();
            assert!(home.folder().join("site/lib-1.0.dist-info").is_dir());
        }
    }
}
