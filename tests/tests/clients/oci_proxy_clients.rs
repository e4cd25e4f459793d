//! docker, skopeo and podman themselves through a proxy of a second server: they pull what is there, and go on when that server is gone;
//! and what each says when it pushes to a proxy, or pulls what the proxy refuses.

use packhouse_tests::clients::{Said, has, run};
use packhouse_tests::docker::Docker;
use packhouse_tests::image_proxy::{ImageProxy, offer, server};
use packhouse_tests::images::{ImageRepository, MANIFEST, layout, manifest};
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Server, skip};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A second server's repository behind a proxy, with a token that reads and writes the proxy.
struct World {
    far: Server,
    near: Server,
    hosted: ImageRepository,
    proxy: ImageProxy,
    token: String,
    home: TempDir,
}

impl World {
    fn new() -> Self {
        let (far, near) = (Server::start(), server());
        let hosted = ImageRepository::create(&far, "images", &json!({}));
        let upstream = format!("{}/v2/repositories/images", far.base_url());
        let settings = json!({"metadata_ttl_s": 0});
        let proxy = ImageProxy::create(&near, "hub", &upstream, &settings);
        proxy.credentials(OWNER, &hosted.token.secret, None);
        let token = proxy.api.create_token(&[&proxy.id], &["read", "write"], None).secret;
        let home = TempDir::new().unwrap();
        std::fs::write(home.path().join("policy.json"), r#"{"default":[{"type":"insecureAcceptAnything"}]}"#)
            .unwrap();
        Self { far, near, hosted, proxy, token, home }
    }

    /// An image behind the proxy, as clients name it.
    fn image(&self, rest: &str) -> String {
        format!("{}/repositories/hub/{rest}", self.near.packages())
    }
}

fn skopeo(home: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new("skopeo");
    command.arg("--policy").arg(home.join("policy.json")).args(arguments).current_dir(home).env("HOME", home);
    run(&mut command)
}

#[test]
fn skopeo_and_podman_pull_through_a_proxy_and_go_on_without_its_upstream() {
    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let world = World::new();
    let home = world.home.path();
    let digest = layout(&home.join("here"), &["amd64", "arm64"]);
    let good = format!("{OWNER}:{}", world.token);
    let copy = |from: &str, to: &str, side: &str, credential: &str| {
        let (tls, creds) = (format!("--{side}-tls-verify=false"), format!("--{side}-creds={credential}"));
        skopeo(home, &["copy", "--all", "--preserve-digests", &tls, &creds, from, to])
    };
    let there = format!("docker://{}/repositories/images/team/app:1.0", world.far.packages());
    copy("oci:here", &there, "dest", &format!("{OWNER}:{}", world.hosted.token.secret)).well();
    let (tagged, named) = (world.image("team/app:1.0"), world.image(&format!("team/app@{digest}")));
    let pull = |from: &str, to: &str| {
        copy(&format!("docker://{from}"), &format!("oci:{to}"), "src", &good).well();
        let index = std::fs::read_to_string(home.join(to).join("index.json")).unwrap();
        assert!(index.contains(&digest), "{index}");
    };
    let podman = |arguments: &[&str]| {
        let mut command = Command::new("podman");
        command.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]);
        command.arg("--root").arg(home.join("root")).arg("--runroot").arg(home.join("run"));
        command.args(arguments).current_dir(home).env("HOME", home);
        run(&mut command)
    };
    let policy = home.join("policy.json").display().to_string();
    let podman_pulls = |image: &str| {
        let quiet =
            ["pull", "--signature-policy", &policy, "--tls-verify=false", "--arch=amd64", "--creds", &good];
        podman(&[&quiet[..], &[image]].concat())
    };
    pull(&tagged, "first");
    let with_podman = has("podman");
    if with_podman {
        podman_pulls(&tagged).well();
        podman(&["rmi", "--all", "--force"]).well();
    } else {
        skip("podman", "no podman on the path");
    }
    // Of a large manifest, and of a push, the client's own words.
    copy("oci:here", &format!("docker://{tagged}"), "dest", &good).refused("method not allowed");

    let World { far, .. } = world;
    drop(far);
    pull(&tagged, "second");
    pull(&named, "third");
    if with_podman {
        podman_pulls(&tagged).well();
        podman_pulls(&named).well();
    }
    let tls = ["--tls-verify=false", "--creds", good.as_str()];
    let near = world.near.packages();
    let missing = format!("docker://{near}/repositories/hub/team/app:2.0");
    skopeo(home, &["inspect", tls[0], tls[1], tls[2], &missing]).refused("upstream registry cannot be used");
}

#[test]
fn docker_pulls_through_a_proxy_and_goes_on_without_its_upstream() {
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => return skip("docker", &reason),
    };
    let world = World::new();
    let (far, near) = (world.far.packages().to_string(), world.near.packages().to_string());
    for (host, secret) in [(&far, &world.hosted.token.secret), (&near, &world.token)] {
        docker.run(&["login", "-u", OWNER, "-p", secret, host]).well();
    }
    std::fs::write(docker.home().join("Dockerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(docker.home().join("hello"), "hello").unwrap();
    std::fs::write(docker.home().join(".dockerignore"), "*\n!hello\n").unwrap();
    let origin = format!("{far}/repositories/images/team/hello:1");
    docker.run(&["build", "-t", &origin, "."]).well();
    let pushed = docker.run(&["push", &origin]).well().text;
    let digest = pushed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    let image = world.image("team/hello:1");
    let pull = |image: &str| {
        docker.run(&["image", "prune", "--all", "--force"]).well();
        assert!(docker.run(&["pull", image]).well().text.contains(digest));
    };
    pull(&image);
    docker.run(&["push", &image]).refused("method not allowed");

    // A manifest over 4 MiB, in docker's words.
    let upstream = Upstream::start();
    let other = ImageProxy::create(&world.near, "other", &upstream.url(), &json!({}));
    let large = manifest(&[b"large"]) + &" ".repeat(5 << 20);
    offer(&upstream, "large", Some("1"), MANIFEST, &large);
    let token = world.proxy.api.create_token(&[&other.id, &world.proxy.id], &["read"], None);
    docker.run(&["login", "-u", OWNER, "-p", &token.secret, &near]).well();
    docker
        .run(&["pull", &format!("{near}/repositories/other/large:1")])
        .refused("manifest exceeds maximum size");

    let named = world.image(&format!("team/hello@{digest}"));
    let World { far, .. } = world;
    drop(far);
    pull(&image);
    pull(&named);
}
