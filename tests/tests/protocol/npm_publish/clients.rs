//! Manifests that clients change. npm, pnpm, yarn and bun pack one manifest into the archive and
//! send a changed one in the document. The server publishes the manifest of the document.

use super::{publish, with_each};
use crate::release::{Release, gzip, tar};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use serde_json::{Value, json};

/// Writes a package whose `package.json` begins with a byte order mark and blanks.
fn oddly_written(js: &Js, folder: &str, manifest: &Value) {
    js.package(folder, manifest);
    let text = serde_json::to_string_pretty(manifest).unwrap();
    js.write(&format!("{folder}/package.json"), &format!("\u{feff}\r\n\t{text}\n\n"));
}

/// Returns the manifest of a version that the server serves.
fn served(repository: &NpmRepository, path: &str) -> Value {
    repository.get(path).expect(200).json()
}

#[test]
fn the_manifest_that_a_client_sends_is_published() {
    with_each(&Tool::ALL, |_, repository, js| {
        let tool = js.tool;
        let dep = Release::new("dep", "1.0.0").package_json("{\"name\":\"dep\",\"version\":\"1.0.0\"}");
        publish(&repository, &dep).expect(201);

        // Yarn 4 resolves all dependencies before it publishes, and the test cannot reach a git
        // host.
        let required = match tool {
            Tool::Yarn4 => json!({"dep": "^1.0.0"}),
            _ => {
                json!({"dep": "^1.0.0", "of-git": "user/repository", "by-address": "https://github.com/u/r.git#v1"})
            }
        };
        oddly_written(
            &js,
            "native",
            &json!({
                "name": "@acme/native", "version": "1.0.0", "dependencies": required, "optionalDependencies": {"dep": "^1.0.0"},
                "bin": "./cli.js", "scripts": {"test": "./node_modules/.bin/mocha"}, "funding": "https://acme.example",
                "publishConfig": {"main": "dist.js", "bin": {"native": "b.js"}},
            }),
        );
        for file in ["binding.gyp", "server.js", "cli.js", "b.js", "dist.js"] {
            js.write(&format!("native/{file}"), if file == "binding.gyp" { "{}" } else { "" });
        }
        js.publish("native").success();
        let native = served(&repository, "@acme%2fnative/1.0.0");
        // Yarn 4 and bun omit implicit scripts from the document. The server reads these scripts
        // from the archive.
        assert_eq!(native["hasInstallScript"], true, "{tool:?}: {native}");

        js.package("tools", &json!({"name": "tools", "version": "1.0.0", "directories": {"bin": "./tools"}}));
        js.write("tools/tools/one", "#!/bin/sh\n");
        js.publish("tools").success();
        if tool != Tool::Yarn4 {
            assert_eq!(served(&repository, "tools/1.0.0")["bin"]["one"], "tools/one", "{tool:?}");
        }

        let scripts = json!({"preinstall": "true", "install": "echo built", "prepack": "true"});
        js.package("scripts", &json!({"name": "scripts", "version": "1.0.0", "scripts": scripts}));
        js.write("scripts/binding.gyp", "{}");
        js.publish("scripts").success();
        assert_eq!(served(&repository, "scripts/1.0.0")["scripts"]["install"], "echo built", "{tool:?}");
    });
}

#[test]
fn bundled_dependencies_are_published() {
    with_each(&[Tool::Npm10, Tool::Npm11, Tool::Bun], |_, repository, js| {
        let manifest = json!({"name": "bundle", "version": "1.0.0", "bundledDependencies": ["x", "y"], "dependencies": {"x": "1"}});
        js.package("bundle", &manifest);
        for name in ["x", "y"] {
            js.package(&format!("bundle/node_modules/{name}"), &json!({"name": name, "version": "1.0.0"}));
        }
        js.publish("bundle").success();
        served(&repository, "bundle/1.0.0");
    });
}

#[test]
fn workspace_ranges_are_replaced_by_versions() {
    with_each(&[Tool::Pnpm, Tool::Yarn4, Tool::Bun], |_, repository, js| {
        js.package(
            "all",
            &json!({"name": "all", "version": "0.0.0", "private": true, "workspaces": ["packages/*"]}),
        );
        js.write("all/pnpm-workspace.yaml", "packages:\n  - packages/*\n");
        for name in ["one", "two", "three"] {
            js.write(
                &format!("all/packages/{name}/package.json"),
                &json!({"name": name, "version": "1.2.3"}).to_string(),
            );
        }
        let of = json!({
            "name": "of-them", "version": "1.0.0", "dependencies": {"one": "workspace:^"}, "devDependencies": {"two": "workspace:*"},
            "peerDependencies": {"three": "workspace:~"},
        });
        js.write("all/packages/of-them/package.json", &of.to_string());
        js.run("all", &["install"]).success();
        js.publish("all/packages/of-them").success();
        let manifest = served(&repository, "of-them/1.0.0");
        assert_eq!(manifest["dependencies"], json!({"one": "^1.2.3"}), "{:?}", js.tool);
        assert_eq!(manifest["peerDependencies"], json!({"three": "~1.2.3"}), "{:?}", js.tool);
    });
}

/// Archives of other tools may name their top folder differently. npm removes blanks around a name.
#[test]
fn an_archive_with_another_folder_is_published() {
    with_each(&[Tool::Npm10, Tool::Npm11], |_, repository, js| {
        let own =
            json!({"name": "folder", "version": "1.0.0", "bin": "cli.js", "dependencies": {"a": "u/r"}});
        let files = [("some-folder/package.json", own.to_string()), ("some-folder/cli.js", String::new())];
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        std::fs::write(js.folder().join("folder.tgz"), gzip(&tar(&files))).unwrap();
        js.run("", &["publish", "./folder.tgz"]).success();
        assert_eq!(served(&repository, "folder/1.0.0")["bin"], json!({"folder": "cli.js"}), "{:?}", js.tool);

        js.package("blanks", &json!({"name": " blanks ", "version": " v1.0.0 "}));
        js.publish("blanks").success();
        served(&repository, "blanks/1.0.0");
    });
}
