//! The tarball: it runs wherever it is unpacked; its content; and no package contains a path of
//! this machine.

use super::used::{INSTALL, to_a_first_install};
use super::{lines, package, packages};
use packhouse_tests::clients::run;
use packhouse_tests::server::{eventually, free_port};
use packhouse_tests::{checkout, skip};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tarball's one folder, unpacked by the documented lines.
fn unpacked(home: &tempfile::TempDir) -> PathBuf {
    let tarball = package("packhouse-", ".tar.gz");
    std::fs::hard_link(&tarball, home.path().join(tarball.file_name().unwrap()))
        .or_else(|_| std::fs::copy(&tarball, home.path().join(tarball.file_name().unwrap())).map(|_| ()))
        .unwrap();
    let text = lines(INSTALL, "## Tarball");
    let unpack = text.lines().next().unwrap();
    run(Command::new("bash").args(["-euo", "pipefail", "-c", unpack]).current_dir(home.path())).success();
    home.path().join(tarball.file_name().unwrap().to_string_lossy().trim_end_matches(".tar.gz"))
}

#[test]
fn it_serves_wherever_it_was_unpacked() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = unpacked(&home);
    let ports = [free_port(), free_port()];
    let [packages, api] = ports.map(|port| format!("127.0.0.1:{port}"));
    let program = folder.join("packhouse");
    let mut command = Command::new(&program);
    command.arg("serve").current_dir(home.path()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("PACKHOUSE_PACKAGES_LISTEN", &packages).env("PACKHOUSE_API_LISTEN", &api);
    let _server = Running(command.spawn().unwrap());
    let check = || {
        let mut check = Command::new(&program);
        check.arg("healthcheck").env("PACKHOUSE_API_LISTEN", &api);
        run(&mut check)
    };
    eventually("it is healthy", || check().success.then_some(()));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let user = to_a_first_install(
        |text| {
            run(Command::new("bash")
                .args(["-euo", "pipefail", "-c", text])
                .env("PATH", &path)
                .current_dir(home.path()))
        },
        |client| client,
        &packages,
    );
    if user.is_none() {
        skip("tarball: a first install", "no twine; `./bootstrap test-dist` installs it");
    }
}

#[test]
fn it_contains_the_documented_files() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = unpacked(&home);
    let promised = [
        "LICENSE",
        "README.md",
        "packhouse.example.toml",
        "packhouse.service",
        "docs/guides/install.md",
        "docs/clients/python.md",
        "deploy/proxies/nginx.conf",
        "plugins/policies/provenance.wasm",
    ];
    for name in promised {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let licences = std::fs::read_to_string(folder.join("THIRD-PARTY-LICENSES")).unwrap();
    for library in ["wasmtime 48.", "tokio 1.", "aws-lc-sys 0.", "libsqlite3-sys 0.", "quick-xml 0."] {
        assert!(licences.contains(library), "{library}");
    }
    let plugins = std::fs::read_dir(checkout().join("plugins")).unwrap();
    let is_plugin = |path: &std::path::PathBuf| path.join("Cargo.toml").is_file();
    for plugin in plugins.map(|entry| entry.unwrap().path()).filter(is_plugin) {
        let name = plugin.file_name().unwrap().to_string_lossy().into_owned();
        assert!(folder.join("plugins").join(&name).with_extension("wasm").is_file(), "{name}");
        components(&folder.join(format!("sbom/plugin-{name}.cdx.json")));
    }
    let named = components(&folder.join("sbom/packhouse.cdx.json"));
    for library in ["wasmtime", "tokio", "aws-lc-sys", "libsqlite3-sys"] {
        assert!(named.iter().any(|name| name == library), "{library}");
    }
    let code = std::fs::read_dir(folder.join("compiled")).unwrap();
    assert!(code.count() >= 10, "the plugins are not compiled");
    // The program is stripped.
    let program = folder.join("packhouse");
    let output = run(Command::new("readelf").args(["--sections", "--wide"]).arg(&program)).success();
    assert!(!output.text.contains(".symtab") && !output.text.contains(".debug_"), "{}", output.text);
}

/// The names in a bill of materials.
fn components(bill: &std::path::Path) -> Vec<String> {
    let bill: Value = serde_json::from_slice(&std::fs::read(bill).unwrap()).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let components = bill["components"].as_array().unwrap();
    components.iter().map(|component| component["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_package_contains_a_path_of_this_machine() {
    let home = tempfile::TempDir::new().unwrap();
    let folder = unpacked(&home);
    let mut paths = vec![checkout().display().to_string()];
    paths.extend(std::env::var("HOME").ok());
    paths.extend(std::env::var("CARGO_HOME").ok());
    for path in paths {
        let mut command = Command::new("grep");
        command.args([
            "--recursive",
            "--text",
            "--fixed-strings",
            "--files-with-matches",
            &format!("{path}/"),
        ]);
        let output = run(command.arg(&folder));
        assert!(!output.success, "{path} stands in {}", output.text);
    }
}

#[test]
fn the_sums_are_those_of_the_packages() {
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(packages()))
        .success();
}
