//! Tests with docker, skopeo, podman and buildah: they sign in, push, pull, build and copy, and
//! print understandable refusals.

use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::docker::Docker;
use packhouse_tests::images::{ImageRepository, layout};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Server, skip};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A server with the repository `images`, and an empty folder.
fn set() -> (Server, ImageRepository, TempDir) {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let home = TempDir::new().unwrap();
    std::fs::write(home.path().join("policy.json"), r#"{"default":[{"type":"insecureAcceptAnything"}]}"#)
        .unwrap();
    (server, repository, home)
}

fn skopeo(home: &Path, arguments: &[&str]) -> ProgramOutput {
    let policy = home.join("policy.json");
    let mut command = Command::new("skopeo");
    command.arg("--policy").arg(policy).args(arguments).current_dir(home).env("HOME", home);
    run(&mut command)
}

#[test]
fn skopeo_copies_an_index_there_and_back_with_equal_digests() {
    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let (server, repository, home) = set();
    let digest = layout(&home.path().join("here"), &["amd64", "arm64"]);
    let there = format!("docker://{}/repositories/images/team/app:1.0", server.packages());
    let good = format!("{OWNER}:{}", repository.token.secret);
    let copy = |from: &str, to: &str, side: &str, credential: &str| {
        let (tls, creds) = (format!("--{side}-tls-verify=false"), format!("--{side}-creds={credential}"));
        skopeo(home.path(), &["copy", "--all", "--preserve-digests", &tls, &creds, from, to])
    };
    copy("oci:here", &there, "dest", &good).success();
    assert_eq!(
        repository.get("team/app/manifests/1.0").expect(200).header("docker-content-digest"),
        Some(digest.as_str())
    );
    copy(&there, "oci:back", "src", &good).success();
    let index = std::fs::read_to_string(home.path().join("back/index.json")).unwrap();
    assert!(index.contains(&digest), "{index}");
    // The second copy finds that the repository already has everything.
    copy("oci:here", &there, "dest", &good).success();

    let api = Api::sign_in(&server);
    let other = ImageRepository::create(&server, "other", &json!({}));
    let reader = api.create_token(&[&repository.id], &["read"], None);
    let reads = format!("{OWNER}:{}", reader.secret);
    copy(&there, "oci:read", "src", &reads).success();
    copy("oci:here", &there, "dest", &reads).refused("denied");
    copy("oci:here", &there, "dest", &format!("{OWNER}:wrong")).refused("unauthorized");
    copy("oci:here", &there, "dest", &format!("{OWNER}:{}", other.token.secret)).refused("403 (Forbidden)");

    let tls = ["--tls-verify=false", "--creds", good.as_str()];
    let tagged = &there;
    let listed = skopeo(home.path(), &["list-tags", tls[0], tls[1], tls[2], tagged.trim_end_matches(":1.0")]);
    assert!(listed.success().text.contains("\"1.0\""));
    skopeo(home.path(), &["delete", tls[0], tls[1], tls[2], tagged]).success();
    skopeo(home.path(), &["inspect", tls[0], tls[1], tls[2], tagged]).refused("manifest unknown");
}

#[test]
fn skopeo_sync_copies_every_tag_of_an_image() {
    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let (server, repository, home) = set();
    let other = ImageRepository::create(&server, "other", &json!({}));
    let address = |path: &str| format!("{}/repositories/{path}", server.packages());
    let credential = |of: &ImageRepository| format!("{OWNER}:{}", of.token.secret);
    let digest = layout(&home.path().join("here"), &["amd64", "arm64"]);
    for tag in ["1.0", "2.0"] {
        let creds = format!("--dest-creds={}", credential(&repository));
        let to = format!("docker://{}:{tag}", address("images/team/app"));
        let options = ["copy", "--all", "--preserve-digests", "--dest-tls-verify=false", &creds];
        skopeo(home.path(), &[&options[..], &["oci:here", &to]].concat()).success();
    }
    let sync = |from: &str| {
        let from_creds = format!("--src-creds={}", credential(&repository));
        let to_creds = format!("--dest-creds={}", credential(&other));
        let places = ["sync", "--all", "--preserve-digests", "--src=docker", "--dest=docker"];
        let access = ["--src-tls-verify=false", "--dest-tls-verify=false", &from_creds, &to_creds];
        let [from, to] = [address(from), address("other")];
        skopeo(home.path(), &[&places[..], &access, &[from.as_str(), to.as_str()]].concat())
    };
    sync("images/team/app").success();
    assert_eq!(other.get("app/tags/list").expect(200).json()["tags"], json!(["1.0", "2.0"]));
    for tag in ["1.0", "2.0"] {
        let manifest = other.get(&format!("app/manifests/{tag}")).expect(200);
        assert_eq!(manifest.header("docker-content-digest"), Some(digest.as_str()));
    }
    // The address of a repository does not name an image. Old versions of skopeo print the status
    // in their own words; newer versions print the body.
    let output = sync("images");
    let tells = output.text.contains("400 (Bad Request)") || output.text.contains("at least two segments");
    assert!(!output.success && tells, "{}", output.text);
}

#[test]
fn docker_signs_in_builds_pushes_and_pulls() {
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => return skip("docker", &reason),
    };
    let (server, repository, _home) = set();
    let host = server.packages().to_string();
    let login = |secret: &str| docker.run(&["login", "-u", OWNER, "-p", secret, &host]);
    login("wrong").refused("unauthorized");
    assert!(login(&repository.token.secret).success().text.contains("Login Succeeded"));

    std::fs::write(docker.home().join("Dockerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(docker.home().join("hello"), "hello").unwrap();
    std::fs::write(docker.home().join(".dockerignore"), "*\n!hello\n").unwrap();
    let image = format!("{host}/repositories/images/team/hello:1");
    docker.run(&["build", "-t", &image, "."]).success();
    let pushed = docker.run(&["push", &image]).success().text;
    docker.run(&["rmi", &image]).success();
    let pulled = docker.run(&["pull", &image]).success().text;
    let digest = pushed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    assert!(pulled.contains(digest), "{pushed}\n{pulled}");
    docker.run(&["pull", &format!("{host}/repositories/images/team/hello@{digest}")]).success();
    let again = format!("{host}/repositories/images/team/again:1");
    docker.run(&["tag", &image, &again]).success();
    assert!(docker.run(&["push", &again]).success().text.contains(digest));

    docker.run(&["pull", &format!("{host}/repositories/images/team/none:1")]).refused("not found");
    let nowhere = format!("{host}/repositories/nowhere/hello:1");
    docker.run(&["tag", &image, &nowhere]).success();
    docker.run(&["push", &nowhere]).refused("name unknown: repository not found");
    ImageRepository::create(&server, "other", &json!({}));
    let other = format!("{host}/repositories/other/hello:1");
    docker.run(&["tag", &image, &other]).success();
    docker.run(&["push", &other]).refused("denied");
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    login(&reader.secret).success();
    docker.run(&["pull", &image]).success();
    docker.run(&["push", &again]).refused("denied");
}

#[test]
fn podman_builds_pushes_and_pulls() {
    if !has("podman") {
        return skip("podman", "no podman on the path");
    }
    let (server, repository, home) = set();
    let podman = |arguments: &[&str]| {
        let mut command = Command::new("podman");
        command.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]);
        command.arg("--root").arg(home.path().join("root")).arg("--runroot").arg(home.path().join("run"));
        command.args(arguments).current_dir(home.path()).env("HOME", home.path());
        command.env("REGISTRY_AUTH_FILE", home.path().join("auth.json"));
        run(&mut command)
    };
    let host = server.packages().to_string();
    let login = |secret: &str| podman(&["login", "--tls-verify=false", "-u", OWNER, "-p", secret, &host]);
    login("wrong").refused("invalid username/password");
    login(&repository.token.secret).success();
    std::fs::create_dir(home.path().join("context")).unwrap();
    std::fs::write(home.path().join("context/Containerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(home.path().join("context/hello"), "hello").unwrap();
    let image = format!("{host}/repositories/images/podman:1");
    let policy = home.path().join("policy.json").display().to_string();
    let built =
        podman(&["build", "--signature-policy", &policy, "--isolation", "chroot", "-t", &image, "context"]);
    if !built.success {
        return skip(
            "podman",
            &format!("it cannot build here: {}", built.text.lines().last().unwrap_or_default()),
        );
    }
    podman(&["push", "--signature-policy", &policy, "--tls-verify=false", &image]).success();
    podman(&["rmi", &image]).success();
    podman(&["pull", "--signature-policy", &policy, "--tls-verify=false", &image]).success();
    assert!(repository.get("podman/tags/list").expect(200).text().contains("\"tags\":[\"1\"]"));
}

#[test]
fn buildah_builds_pushes_and_pulls_an_image_of_two_platforms() {
    if !has("buildah") {
        return skip("buildah", "no buildah on the path");
    }
    let (server, repository, home) = set();
    let policy = home.path().join("policy.json").display().to_string();
    let checked = ["--signature-policy", policy.as_str()];
    let remote = ["--signature-policy", policy.as_str(), "--tls-verify=false"];
    let buildah = |command: &[&str], options: &[&str], rest: &[&str]| {
        let mut buildah = Command::new("buildah");
        buildah.args(["--storage-driver", "vfs", "--root"]).arg(home.path().join("root"));
        buildah.arg("--runroot").arg(home.path().join("run")).args(command).args(options).args(rest);
        buildah.current_dir(home.path()).env("HOME", home.path());
        run(buildah.env("REGISTRY_AUTH_FILE", home.path().join("auth.json")))
    };
    let host = server.packages().to_string();
    let login =
        |secret: &str| buildah(&["login"], &["--tls-verify=false", "-u", OWNER, "-p", secret], &[&host]);
    login("wrong").refused("invalid username/password");
    login(&repository.token.secret).success();
    let begun = buildah(&["from"], &["--name", "work"], &["scratch"]);
    if !begun.success {
        return skip(
            "buildah",
            &format!("it cannot build here: {}", begun.text.lines().last().unwrap_or_default()),
        );
    }
    std::fs::write(home.path().join("hello"), "hello").unwrap();
    buildah(&["copy"], &[], &["work", "hello", "/hello"]).success();
    buildah(&["manifest", "create"], &[], &["list"]).success();
    let image = |tag: &str| format!("{host}/repositories/images/team/built:{tag}");
    for architecture in ["arm64", "amd64"] {
        buildah(&["config"], &["--arch", architecture], &["work"]).success();
        buildah(&["commit"], &checked, &["work", &image(architecture)]).success();
        let stored = format!("containers-storage:{}", image(architecture));
        buildah(&["manifest", "add"], &[], &["list", &stored]).success();
    }
    buildah(
        &["manifest", "push"],
        &[&["--all"], &remote[..]].concat(),
        &["list", &format!("docker://{}", image("1"))],
    )
    .success();
    let index = repository.get("team/built/manifests/1").expect(200).json();
    let platforms: Vec<_> =
        index["manifests"].as_array().unwrap().iter().map(|part| &part["platform"]["architecture"]).collect();
    assert_eq!(platforms, ["arm64", "amd64"]);
    buildah(&["rmi"], &["--force"], &["--all"]).success();
    buildah(&["pull"], &remote, &[&image("1")]).success();
    buildah(&["pull"], &remote, &[&image("none")]).refused("manifest unknown");

    let api = Api::sign_in(&server);
    login(&api.create_token(&[&repository.id], &["read"], None).secret).success();
    let push = || buildah(&["push"], &remote, &[&image("1"), &format!("docker://{}", image("2"))]);
    push().refused("denied: insufficient permissions");
    login(&ImageRepository::create(&server, "other", &json!({})).token.secret).success();
    buildah(&["pull"], &[&["--policy", "always"], &remote[..]].concat(), &[&image("1")])
        .refused("denied: insufficient permissions");
}
