//! Versions that a proxy leaves out of its lists, as clients display them. npm prints the
//! reason that the proxy writes into the packument; pip and uv print the reason of the yank. A
//! client that has the file's address from a lock file gets the refusal of the file. If another
//! version fits, clients install that version.

use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};

use super::clients::flat;
use super::{enforced, except, wheel};
use crate::release::Release;

/// An upstream with `lib` in two versions, and a server whose test policy denies the second.
struct DeniedVersionFixture {
    far: Server,
    near: Server,
    api: Api,
}

impl DeniedVersionFixture {
    fn start() -> DeniedVersionFixture {
        let (far, near) = (
            Server::start(),
            Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start(),
        );
        let api = Api::sign_in(&near);
        DeniedVersionFixture { far, near, api }
    }

    fn public() -> Value {
        json!({"kind": "hosted", "settings": {"public": true}})
    }
}

/// Creates a policy that withholds versions younger than a year, and exempts the first version. The
/// fixture published all versions just now.
fn hold(api: &Api, first: &str) -> String {
    let id = enforced(api, "least-age", json!({"hours": 24 * 365}), json!("*"));
    let body = json!({"package": "lib", "version": first, "reason": "seen and accepted", "until": super::in_an_hour()});
    api.post(&format!("/v1/policies/{id}/exceptions"), &body).expect(201);
    id
}

#[test]
fn npm_prints_why_a_version_is_missing() {
    let world = DeniedVersionFixture::start();
    let far = NpmRepository::create_as(&world.far, "npm", &DeniedVersionFixture::public());
    for version in ["1.0.0", "1.1.0"] {
        far.put("lib", &Release::new("lib", version).document()).expect(201);
    }
    // `lib` depends on this package.
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
    locked(&eleven).success();
    let id = hold(&world.api, "1.0.0");
    except(&world.api, &id, "dep");
    for (js, name) in [(&ten, "ten"), (&eleven, "eleven")] {
        let project = |folder: &str, range: &str| {
            let folder = format!("{name}-{folder}");
            js.package(&folder, &json!({"name": folder, "version": "1.0.0", "dependencies": {"lib": range}}));
            (js.install(&folder), folder)
        };
        let words = "lib 1.1.0 is younger than 8760 h";
        let output = project("exact", "1.1.0").0.refused("E403");
        assert!(output.text.contains(words) && output.text.contains("(policy ours)"), "{}", output.text);
        let (output, folder) = project("range", "^1.0.0");
        output.success();
        assert_eq!(js.installed(&folder, "lib").as_deref(), Some("1.0.0"), "another version fits");
        project("narrow", "~1.1.0").0.refused(words);
    }
    // A client with the tarball's address from its lock file requests the file directly.
    eleven.forget("locked");
    let output = eleven.install_locked("locked").refused("403");
    assert!(output.text.contains("lib 1.1.0 is younger than 8760 h"), "{}", output.text);
    except(&world.api, &id, "lib");
    eleven.forget("locked");
    eleven.install_locked("locked").success();
}

#[test]
fn pip_and_uv_print_why_a_file_is_missing() {
    let world = DeniedVersionFixture::start();
    let far = PythonRepository::create_as(&world.far, "py", &DeniedVersionFixture::public());
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
            let install = |requirement: &str| {
                let arguments = [
                    "install",
                    "--no-cache-dir",
                    "--target",
                    "site",
                    "--upgrade",
                    "--index-url",
                    &index,
                    requirement,
                ];
                home.run("", "pip", &arguments, &[])
            };
            let output = install("lib==1.1").refused("403");
            assert!(output.text.contains(words) && output.text.contains("(policy ours)"), "{}", output.text);
            // pip prints the versions that it ignores.
            install("lib>1.0").refused("Ignored the following yanked versions: 1.1");
            install("lib").success();
            assert!(home.folder().join("site/lib-1.0.dist-info").is_dir());
        }
    }
    match Home::with("uv") {
        Err(reason) => skip("uv", &reason),
        Ok(home) => {
            let install = |requirement: &str| {
                let arguments = [
                    "pip",
                    "install",
                    "--no-cache",
                    "--target",
                    "site",
                    "--default-index",
                    &index,
                    requirement,
                ];
                home.run("", "uv", &arguments, &[])
            };
            let output = install("lib>1.0").refused("yanked");
            assert!(flat(&output.text).contains(words), "{}", output.text);
            install("lib==1.1").refused("403");
            install("lib").success();
            assert!(home.folder().join("site/lib-1.0.dist-info").is_dir());
        }
    }
}
