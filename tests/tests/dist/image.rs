//! The container image, run by docker and by podman with a read-only root, an unprivileged user
//! and a volume.

use super::used::{INSTALL, TLS, certificate, to_a_first_install};
use super::{lines, package, packages};
use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::docker::Docker;
use packhouse_tests::server::{eventually, free_port};
use packhouse_tests::{checkout, skip};
use serde_json::Value;
use std::process::Command;
use tempfile::TempDir;

/// The lines below this heading of a guide, which start a container. They use free ports of this
/// machine instead of published ones, because containers have no network of their own here.
fn start(guide: &str, heading: &str, ports: [u16; 2], more: &str) -> String {
    let listen = format!(
        "--network host {more} -e PACKHOUSE_PACKAGES_LISTEN=127.0.0.1:{} -e PACKHOUSE_API_LISTEN=127.0.0.1:{}",
        ports[0], ports[1]
    );
    let text = lines(guide, heading);
    let published = "-p 127.0.0.1:8080:8080 -p 127.0.0.1:8081:8081";
    assert!(text.contains(published), "{text}");
    text.replace(published, &listen)
}

/// Checks that both engines must pass. `shell` runs lines in the folder of the packages, in which
/// `docker` is the engine. Containers start with the options `more`.
fn serves(name: &str, ports: [u16; 2], more: &str, shell: &dyn Fn(&str) -> ProgramOutput) {
    let inspect = |what: &str| {
        shell(&format!("docker inspect --format '{what}' packhouse")).success().text.trim().to_owned()
    };
    eventually("the container is healthy", || {
        shell("docker exec packhouse packhouse healthcheck").success.then_some(())
    });
    assert_eq!(inspect("{{.HostConfig.ReadonlyRootfs}} {{.Config.User}}"), "true 10001:10001");
    assert_eq!(inspect("{{.State.Running}}"), "true");
    // The command of Docker's health check.
    let check = inspect("{{json .Config.Healthcheck.Test}}");
    assert_eq!(check, r#"["CMD","/usr/bin/packhouse","healthcheck"]"#);
    let alias = "packhouse() { docker exec packhouse packhouse \"$@\"; }";
    let address = format!("127.0.0.1:{}", ports[0]);
    let user = to_a_first_install(|text| shell(&format!("{alias}\n{text}")), |client| client, &address);
    if user.is_none() {
        skip(&format!("{name}: a first install"), "no twine; `./bootstrap test-dist` installs it");
    }
    // The volume outlives the container; the server handles the stop signal and exits with success.
    let began = std::time::Instant::now();
    shell("docker stop -t 60 packhouse").success();
    assert!(began.elapsed().as_secs() < 40, "the stop signal was not handled");
    assert_eq!(inspect("{{.State.ExitCode}}"), "0");
    shell("docker start packhouse").success();
    eventually("it serves again", || {
        shell("docker exec packhouse packhouse healthcheck").success.then_some(())
    });
    let listed = shell("docker exec packhouse packhouse repo list").success().text;
    assert!(listed.contains("python"), "{listed}");

    // TLS, in its own folder: the commands mount files relative to where they run.
    let home = TempDir::new().unwrap();
    certificate(home.path());
    let text = start(TLS, "### Container", ports, more);
    shell(&format!("cd '{}'\n{text}", home.path().display())).success();
    eventually("it is healthy behind TLS", || {
        shell("docker exec packhouse packhouse healthcheck").success.then_some(())
    });
    if let Some(user) = user {
        user.install_through_tls(home.path(), |client| client, &address);
    }
    shell("docker rm --force packhouse").success();
}

#[test]
fn docker_runs_it() {
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => return skip("container image in docker", &reason),
    };
    let ports = [free_port(), free_port()];
    let shell = |text: &str| {
        let folder = packages();
        run(docker.command("bash").args(["-euo", "pipefail", "-c", text]).current_dir(folder))
    };
    let output = shell(&start(INSTALL, "## Container image", ports, ""));
    if !output.success && output.text.contains("cgroup") {
        return skip("container image in docker", &output.text);
    }
    output.success();
    eventually("docker's own check found it healthy", || {
        let output = shell("docker inspect --format '{{.State.Health.Status}}' packhouse");
        (output.text.trim() == "healthy").then_some(())
    });
    serves("container image in docker", ports, "", &shell);
}

#[test]
fn podman_runs_it() {
    if !has("podman") {
        return skip("container image in podman", "no podman on the path");
    }
    let home = TempDir::new().unwrap();
    let ports = [free_port(), free_port()];
    let policy = home.path().join("policy.json");
    std::fs::write(&policy, r#"{"default": [{"type": "insecureAcceptAnything"}]}"#).unwrap();
    let place = home.path().display();
    // On a machine that does not allow higher limits, even podman's defaults are too high.
    let alias = format!(
        "docker() {{ local command=$1; shift; case $command in load) set -- --signature-policy {place}/policy.json \"$@\";; esac
         podman --storage-driver vfs --cgroup-manager cgroupfs --root {place}/root --runroot {place}/run \"$command\" \"$@\"; }}"
    );
    let shell = |text: &str| {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", &format!("{alias}\n{text}")]);
        run(command.current_dir(packages()).env("HOME", home.path()))
    };
    let more = "--ulimit nofile=1000:1000 --ulimit nproc=1000:1000";
    shell(&start(INSTALL, "## Container image", ports, more)).success();
    serves("container image in podman", ports, more, &shell);
    shell("docker volume rm packhouse").success();
}

#[test]
fn the_image_is_small_and_has_labels_and_no_shell() {
    let file = package("packhouse-", "-image.tar");
    let size = std::fs::metadata(&file).unwrap().len();
    // The compiled plugins, which are mapped as they are, take about 40 MB of it.
    assert!(size < 120_000_000, "the image has {size} bytes");
    let home = TempDir::new().unwrap();
    run(Command::new("tar").arg("-xf").arg(&file).current_dir(home.path())).success();
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(home.path().join(name)).unwrap()).unwrap()
    };
    let manifest = read("manifest.json");
    let config = read(manifest[0]["Config"].as_str().unwrap());
    let labels = &config["config"]["Labels"];
    for label in ["title", "description", "licenses", "version", "revision", "created", "documentation"] {
        assert!(labels[format!("org.opencontainers.image.{label}")].is_string(), "{label}: {labels}");
    }
    assert_eq!(config["config"]["User"], "10001:10001");
    assert!(config["config"]["Volumes"]["/var/lib/packhouse"].is_object());
    let mut files = String::new();
    for layer in manifest[0]["Layers"].as_array().unwrap() {
        let layer = home.path().join(layer.as_str().unwrap());
        files += &run(Command::new("tar").arg("-tf").arg(layer)).success().text;
    }
    for shell in ["bin/sh", "bin/bash", "bin/busybox", "usr/bin/dpkg"] {
        assert!(!files.lines().any(|file| file.ends_with(shell)), "{shell}");
    }
}

#[test]
fn the_same_files_make_the_same_image() {
    if !has("buildah") {
        return skip("the image's bytes", "no buildah on the path");
    }
    let home = TempDir::new().unwrap();
    let again = home.path().join("again.tar");
    let made = package("packhouse-", "-image.tar");
    let name = made.file_name().unwrap().to_string_lossy().into_owned();
    let version = name.strip_prefix("packhouse-").unwrap().strip_suffix("-image.tar").unwrap();
    let shell = "export SOURCE_DATE_EPOCH=1 PACKHOUSE_DIST_REVISION=x; umask \"$1\"; packaging/image/build target/packages/stage \"$2\" \"$3\"";
    let build = |umask: &str, to: &std::path::Path| {
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", shell, "build", umask, version]).arg(to);
        run(command.current_dir(checkout())).success();
        packhouse_tests::digests::sha256(&std::fs::read(to).unwrap())
    };
    let first = build("022", &home.path().join("first.tar"));
    assert_eq!(build("077", &again), first);
}
