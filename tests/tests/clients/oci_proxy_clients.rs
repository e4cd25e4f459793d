//! Tests with docker, skopeo and podman through a proxy of a second server. The clients pull the
//! second server's images. They do so again after the second server has ended. They print
//! understandable messages when they push to a proxy, or when the proxy refuses a pull. Also,
//! dockerd and containerd pull images of Docker Hub from a repository that is their mirror.

use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::docker::Docker;
use packhouse_tests::image_proxy::{ImageProxy, offer, server};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest, layout, manifest};
use packhouse_tests::server::{OWNER, free_port};
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Server, skip};
use serde_json::{Value, json};
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

fn skopeo(home: &Path, arguments: &[&str]) -> ProgramOutput {
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
    copy("oci:here", &there, "dest", &format!("{OWNER}:{}", world.hosted.token.secret)).success();
    let (tagged, named) = (world.image("team/app:1.0"), world.image(&format!("team/app@{digest}")));
    let pull = |from: &str, to: &str| {
        copy(&format!("docker://{from}"), &format!("oci:{to}"), "src", &good).success();
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
        podman_pulls(&tagged).success();
        podman(&["rmi", "--all", "--force"]).success();
    } else {
        skip("podman", "no podman on the path");
    }
    // skopeo prints its own words when a proxy refuses a push.
    copy("oci:here", &format!("docker://{tagged}"), "dest", &good).refused("method not allowed");

    let World { far, .. } = world;
    drop(far);
    pull(&tagged, "second");
    pull(&named, "third");
    if with_podman {
        podman_pulls(&tagged).success();
        podman_pulls(&named).success();
    }
    let tls = ["--tls-verify=false", "--creds", good.as_str()];
    let near = world.near.packages();
    let missing = format!("docker://{near}/repositories/hub/team/app:2.0");
    skopeo(home, &["inspect", tls[0], tls[1], tls[2], &missing]).refused("upstream registry cannot be used");
}

/// Checks clients that print only the status line for a status of 500 or more.
#[test]
fn skopeo_podman_and_buildah_show_why_a_proxy_cannot_serve() {
    let near = server();
    let upstream = format!("http://127.0.0.1:{}", free_port());
    let proxy = ImageProxy::create(&near, "hub", &upstream, &json!({}));
    let home = TempDir::new().unwrap();
    std::fs::write(home.path().join("policy.json"), r#"{"default":[{"type":"insecureAcceptAnything"}]}"#)
        .unwrap();
    let image = format!("{}/repositories/hub/team/app:1.0", near.packages());
    let creds = format!("{OWNER}:{}", proxy.secret);
    let access = ["--tls-verify=false", "--creds", creds.as_str()];
    let pull = |client: &str| {
        if client == "skopeo" {
            let image = format!("docker://{image}");
            return skopeo(home.path(), &[&["inspect"], &access[..], &[image.as_str()]].concat());
        }
        let mut command = Command::new(client);
        command.args(["--storage-driver", "vfs", "--root"]).arg(home.path().join("root"));
        command.arg("--runroot").arg(home.path().join("run")).args(["pull", "--signature-policy"]);
        command.arg(home.path().join("policy.json")).args(access).arg(&image);
        run(command.current_dir(home.path()).env("HOME", home.path()))
    };
    for client in ["skopeo", "podman", "buildah"] {
        if has(client) {
            pull(client).refused("upstream registry cannot be used");
        } else {
            skip(client, &format!("no {client} on the path"));
        }
    }
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
        docker.run(&["login", "-u", OWNER, "-p", secret, host]).success();
    }
    std::fs::write(docker.home().join("Dockerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(docker.home().join("hello"), "hello").unwrap();
    std::fs::write(docker.home().join(".dockerignore"), "*\n!hello\n").unwrap();
    let origin = format!("{far}/repositories/images/team/hello:1");
    docker.run(&["build", "-t", &origin, "."]).success();
    let pushed = docker.run(&["push", &origin]).success().text;
    let digest = pushed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    let image = world.image("team/hello:1");
    let pull = |image: &str| {
        docker.run(&["image", "prune", "--all", "--force"]).success();
        assert!(docker.run(&["pull", image]).success().text.contains(digest));
    };
    pull(&image);
    docker.run(&["push", &image]).refused("method not allowed");

    // The proxy refuses a manifest over 4 MiB, and docker prints this in its own words.
    let upstream = Upstream::start();
    let other = ImageProxy::create(&world.near, "other", &upstream.url(), &json!({}));
    let large = manifest(&[b"large"]) + &" ".repeat(5 << 20);
    offer(&upstream, "large", Some("1"), MANIFEST, &large);
    let token = world.proxy.api.create_token(&[&other.id, &world.proxy.id], &["read"], None);
    docker.run(&["login", "-u", OWNER, "-p", &token.secret, &near]).success();
    docker
        .run(&["pull", &format!("{near}/repositories/other/large:1")])
        .refused("manifest exceeds maximum size");

    let named = world.image(&format!("team/hello@{digest}"));
    let World { far, .. } = world;
    drop(far);
    pull(&image);
    pull(&named);
}

/// A repository with these settings, and its URL as a mirror.
fn mirror(server: &Server, settings: &Value) -> (ImageRepository, String) {
    let repository = ImageRepository::create(server, "mirror", settings);
    (repository, format!("{}/repositories/mirror", server.base_url()))
}

#[test]
fn containerd_pulls_from_a_mirror_with_a_credential() {
    // The daemon starts its own containerd.
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => return skip("containerd", &reason),
    };
    let socket = docker.home().join("run/containerd/containerd.sock");
    if !has("ctr") || !socket.exists() {
        return skip("containerd", "no ctr on the path, or the docker daemon has no containerd of its own");
    }
    let server = Server::start();
    let (repository, mirror) = mirror(&server, &json!({}));
    let manifest = repository.push("library/hello", "1", &[b"layer"]).unwrap();
    let hosts = docker.home().join("hosts/docker.io");
    std::fs::create_dir_all(&hosts).unwrap();
    // containerd requests images that the mirror lacks from `server`. The settings therefore name a
    // server on this machine.
    let settings = format!(
        "server = \"{}\"\n\n[host.\"{mirror}/v2\"]\n  capabilities = [\"pull\", \"resolve\"]\n  override_path = true\n",
        server.base_url()
    );
    std::fs::write(hosts.join("hosts.toml"), settings).unwrap();
    let ctr = |arguments: &[&str]| {
        let mut command = docker.command("ctr");
        run(command.arg("--address").arg(&socket).arg("content").args(arguments))
    };
    let user = format!("{OWNER}:{}", repository.token.secret);
    let image = "docker.io/library/hello:1";
    ctr(&["fetch", "--hosts-dir", "hosts", "--user", &user, image]).success();
    assert_eq!(ctr(&["get", &digest(manifest.as_bytes())]).success().text, manifest);
    assert_eq!(ctr(&["get", &digest(b"layer")]).success().text, "layer");
}

/// A dockerd before 24.0.8 refuses a mirror whose URL has a path, and does not start.
#[test]
fn dockerd_pulls_from_a_mirror() {
    let server = Server::start();
    let (repository, mirror) = mirror(&server, &json!({"public": true}));
    let docker = match Docker::with_settings(&json!({"registry-mirrors": [mirror]}).to_string()) {
        Ok(docker) => docker,
        Err(reason) => return skip("docker", &reason),
    };
    let host = server.packages().to_string();
    docker.run(&["login", "-u", OWNER, "-p", &repository.token.secret, &host]).success();
    std::fs::write(docker.home().join("Dockerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(docker.home().join("hello"), "hello").unwrap();
    std::fs::write(docker.home().join(".dockerignore"), "*\n!hello\n").unwrap();
    let origin = format!("{host}/repositories/mirror/library/hello:1");
    docker.run(&["build", "-t", &origin, "."]).success();
    let pushed = docker.run(&["push", &origin]).success().text;
    let digest = pushed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    docker.run(&["rmi", &origin]).success();
    assert!(docker.run(&["pull", "hello:1"]).success().text.contains(digest));
}
