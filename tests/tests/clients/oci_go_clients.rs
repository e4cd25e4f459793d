//! Tests with crane, regctl and helm: they push and pull images, indexes, signatures and charts,
//! and print understandable refusals.

use packhouse_tests::go::Go;
use packhouse_tests::images::{ImageRepository, digest, layout};
use packhouse_tests::payload::Payload;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Server, skip};
use serde_json::json;
use std::io::Read as _;

/// A server with two repositories, and tokens of each kind.
struct ImageServer {
    _server: Server,
    images: ImageRepository,
    host: String,
    /// A token that reads `images`.
    reader: String,
    /// A token that reads and writes only `other`.
    other_token: String,
    /// A token that reads and writes both.
    both: String,
}

impl ImageServer {
    fn new() -> Self {
        let server = Server::start();
        let images = ImageRepository::create(&server, "images", &json!({}));
        let other = ImageRepository::create(&server, "other", &json!({}));
        let api = Api::sign_in(&server);
        let reader = api.create_token(&[&images.id], &["read"], None).secret;
        let both = api.create_token(&[&images.id, &other.id], &["read", "write"], None).secret;
        let host = server.packages().to_string();
        Self { _server: server, images, host, reader, other_token: other.token.secret, both }
    }

    /// The name of an image in `images`, as clients write it.
    fn image(&self, rest: &str) -> String {
        format!("{}/repositories/images/{rest}", self.host)
    }

    fn digest_of(&self, image: &str, tag: &str) -> String {
        let answer = self.images.get(&format!("{image}/manifests/{tag}")).expect(200);
        answer.header("docker-content-digest").unwrap().to_owned()
    }
}

#[test]
fn crane_pushes_copies_mounts_lists_and_deletes() {
    let crane = match Go::client("crane") {
        Ok(crane) => crane,
        Err(reason) => return skip("crane", &reason),
    };
    let set = ImageServer::new();
    let login = |secret: &str| crane.run(&["auth", "login", &set.host, "-u", OWNER, "-p", secret]).success();
    let app = set.image("team/app");
    layout(&crane.folder().join("here"), &["amd64", "arm64"]);
    // crane pushes the layout's `index.json` as the index.
    let index = digest(&crane.read("here/index.json"));
    let (tagged, copied) = (format!("{app}:1.0"), format!("{}:2", set.image("copied")));
    login(&set.images.token.secret);
    assert!(crane.run(&["push", "--index", "here", &tagged]).success().text.contains(&index));
    assert!(crane.run(&["validate", "--fast", "--remote", &tagged]).success().text.contains("PASS"));
    crane.run(&["pull", "--format", "oci", &tagged, "back"]).success();
    assert!(String::from_utf8(crane.read("back/index.json")).unwrap().contains(&index));
    crane.run(&["copy", &tagged, &copied]).success();
    assert!(crane.run(&["digest", &copied]).success().text.contains(&index));
    crane.run(&["tag", &tagged, "latest"]).success();
    assert_eq!(crane.run(&["ls", &app]).success().text, "1.0\nlatest\n");
    crane.run(&["delete", &copied]).success();
    crane.run(&["manifest", &copied]).refused("MANIFEST_UNKNOWN: manifest not found");
    crane.run(&["catalog", &set.host]).refused("UNSUPPORTED: catalog not yet implemented");
    crane
        .run(&["ls", &format!("{}/repositories/nowhere/app", set.host)])
        .refused("NAME_UNKNOWN: repository not found");
    crane.run(&["ls", &format!("{}/library/app", set.host)]).refused("NAME_INVALID: Invalid OCI path");

    // The server mounts layers from another repository if the client may read that repository and
    // write this one.
    let elsewhere = format!("{}/repositories/other/app:1.0", set.host);
    crane.run(&["copy", &tagged, &elsewhere]).refused("403 Forbidden");
    login(&set.both);
    let output = crane.run(&["copy", &tagged, &elsewhere]).success().text;
    assert!(output.contains("mounted blob") && !output.contains("pushed blob"), "{output}");
    assert!(crane.run(&["digest", &elsewhere]).success().text.contains(&index));

    login(&set.reader);
    crane.run(&["pull", &tagged, "image.tar"]).success();
    crane.run(&["push", "image.tar", &format!("{app}:read")]).refused("DENIED: insufficient permissions");
    crane.run(&["delete", &format!("{app}:latest")]).refused("DENIED: insufficient permissions");
    login(&set.other_token);
    crane.run(&["manifest", &tagged]).refused("DENIED: insufficient permissions");
    login("wrong");
    crane.run(&["manifest", &tagged]).refused("UNAUTHORIZED: authentication required");
    crane.run(&["auth", "logout", &set.host]).success();
    crane.run(&["manifest", &tagged]).refused("UNAUTHORIZED: authentication required");
    assert_eq!(set.digest_of("team/app", "latest"), index);
}

#[test]
fn regctl_copies_attaches_discovers_and_pushes_in_chunks() {
    let regctl = match Go::client("regctl") {
        Ok(regctl) => regctl,
        Err(reason) => return skip("regctl", &reason),
    };
    let set = ImageServer::new();
    let configure = |more: &[&str]| {
        regctl
            .run(
                &[&["registry", "set", "--skip-check", "--tls", "disabled"], more, &[set.host.as_str()]]
                    .concat(),
            )
            .success();
    };
    let login = |secret: &str| regctl.run(&["registry", "login", "-u", OWNER, "-p", secret, &set.host]);
    configure(&[]);
    login("wrong").refused("unauthorized");
    login(&set.images.token.secret).success();

    let index = layout(&regctl.folder().join("here"), &["amd64", "arm64"]);
    let app = set.image("team/app:1.0");
    regctl.run(&["image", "copy", &format!("ocidir://here@{index}"), &app]).success();
    assert_eq!(set.digest_of("team/app", "1.0"), index);
    for (kind, text) in [("application/vnd.example.signature", "signed"), ("application/spdx+json", "{}")] {
        regctl.write("artifact", text);
        regctl
            .run(&["artifact", "put", "--artifact-type", kind, "--subject", &app, "-f", "artifact"])
            .success();
        let found =
            regctl.run(&["artifact", "get", "--subject", &app, "--filter-artifact-type", kind]).success();
        assert_eq!(found.text, text);
    }
    let listed = regctl.run(&["artifact", "list", &app]).success().text;
    assert!(
        listed.contains("application/vnd.example.signature") && listed.contains("application/spdx+json"),
        "{listed}"
    );
    regctl.run(&["image", "copy", "--referrers", &app, "ocidir://back:1.0"]).success();
    assert_eq!(regctl.run(&["image", "digest", "ocidir://back:1.0"]).success().text.trim(), index);
    let back = regctl.run(&["artifact", "list", "ocidir://back:1.0"]).success().text;
    assert!(back.contains("application/vnd.example.signature"), "{back}");

    let mut large = vec![0; 3_000_000];
    Payload::new(5).read_exact(&mut large).unwrap();
    regctl.write("large", &large);
    configure(&["--blob-chunk", "1000000", "--blob-max", "500000"]);
    let artifact = set.image("large:1");
    regctl
        .run(&[
            "artifact",
            "put",
            "--artifact-type",
            "application/vnd.example.large",
            "-f",
            "large",
            &artifact,
        ])
        .success();
    assert!(set.images.get(&format!("large/blobs/{}", digest(&large))).expect(200).body == large);

    assert_eq!(regctl.run(&["tag", "ls", &set.image("team/app")]).success().text, "1.0\n");
    regctl.run(&["tag", "delete", &artifact]).success();
    regctl.run(&["manifest", "get", &artifact]).refused("manifest not found");
    regctl.run(&["repo", "ls", &set.host]).refused("catalog not yet implemented");
    let blob = digest(&large);
    regctl.run(&["blob", "delete", &set.image("large"), &blob]).refused("method not allowed");

    let put = || {
        regctl.run(&["artifact", "put", "--artifact-type", "application/x.y", "-f", "artifact", &artifact])
    };
    login(&set.reader).success();
    regctl.run(&["image", "copy", &app, "ocidir://read:1.0"]).success();
    put().refused(r#""code":"DENIED","message":"insufficient permissions""#);
    login(&set.other_token).success();
    regctl.run(&["manifest", "get", &app]).refused(r#""code":"DENIED","message":"insufficient permissions""#);
    put().refused(r#""code":"DENIED","message":"insufficient permissions""#);
    regctl.run(&["registry", "logout", &set.host]).success();
    regctl.run(&["manifest", "get", &app]).refused("unauthorized");
}

#[test]
fn helm_pushes_shows_pulls_and_renders_a_chart() {
    let helm = match Go::client("helm") {
        Ok(helm) => helm,
        Err(reason) => return skip("helm", &reason),
    };
    let set = ImageServer::new();
    let login =
        |secret: &str| helm.run(&["registry", "login", &set.host, "--plain-http", "-u", OWNER, "-p", secret]);
    login("wrong").refused("unauthorized");
    login(&set.images.token.secret).success();
    let chart = "apiVersion: v2\nname: hello\nversion: 1.2.3+build.1\ndescription: says hello\n";
    helm.write("hello/Chart.yaml", chart);
    helm.write("hello/values.yaml", "greeting: hello\n");
    helm.write(
        "hello/templates/map.yaml",
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: {{ .Values.greeting }}}\n",
    );
    helm.run(&["package", "hello"]).success();
    let (archive, charts) = ("hello-1.2.3+build.1.tgz", format!("oci://{}", set.image("charts")));
    let named = format!("{charts}/hello");
    let pushed = helm.run(&["push", archive, &charts, "--plain-http"]).success().text;
    // A tag cannot contain a plus sign: Helm writes an underscore instead.
    assert!(pushed.contains(&set.digest_of("charts/hello", "1.2.3_build.1")), "{pushed}");
    let with = |command: &[&str]| {
        helm.run(&[command, &[named.as_str(), "--plain-http", "--version", "1.2.3+build.1"]].concat())
    };
    assert!(with(&["show", "chart"]).success().text.contains("description: says hello"));
    helm.run(&["show", "chart", &named, "--plain-http", "--version", "^1"]).success();
    assert!(with(&["template", "greeting"]).success().text.contains("name: hello"));
    let pulled = helm.folder().join("pulled");
    std::fs::create_dir(&pulled).unwrap();
    with(&["pull", "--destination", "pulled"]).success();
    assert_eq!(helm.read(&format!("pulled/{archive}")), helm.read(archive));
    helm.run(&["pull", &named, "--plain-http", "--version", "9.9.9"]).refused("not found");

    login(&set.reader).success();
    with(&["show", "values"]).success();
    helm.run(&["push", archive, &charts, "--plain-http"]).refused("denied: insufficient permissions");
    login(&set.other_token).success();
    helm.run(&["push", archive, &charts, "--plain-http"]).refused("403: Forbidden");
    with(&["show", "chart"]).refused("denied: insufficient permissions");
    helm.run(&["registry", "logout", &set.host]).success();
    with(&["show", "chart"]).refused("unauthorized: authentication required");
}
