//! The measured server. It has packages of four formats in hosted repositories. Proxies, and groups
//! of five hosted repositories, serve the same packages.

use crate::release::Release;
use crate::wheel;
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Request, Server, ServerBuilder, http, payload};
use serde_json::{Value, json};

/// Number of versions of the npm package.
const NPM_VERSIONS: usize = 30;
/// Number of files of the Python project.
const PYTHON_FILES: usize = 50;
/// Number of versions of the Maven artifact.
const MAVEN_VERSIONS: usize = 10;
/// Number of repositories in a group beside the one that has the package.
const OTHERS: usize = 4;

/// The formats, by their names in the API.
const FORMATS: [&str; 4] = ["maven", "npm", "python", "docker"];

/// A kind of read that is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadKind {
    /// Name in the table.
    pub(crate) name: &'static str,
    /// Format of the repository.
    pub(crate) format: &'static str,
    /// Path below the address of the repository.
    pub(crate) below: &'static str,
    /// `Accept` of the request.
    pub(crate) accept: &'static str,
    /// Goal for a response that is not cached, in µs of CPU; `None` without a goal.
    pub(crate) uncached: Option<f64>,
}

/// The measured kinds.
pub(crate) const KINDS: [ReadKind; 7] = [
    ReadKind {
        name: "Maven metadata",
        format: "maven",
        below: "com/example/bench/maven-metadata.xml",
        accept: "*/*",
        uncached: Some(50.0),
    },
    ReadKind {
        name: "jar of 4 KiB",
        format: "maven",
        below: "com/example/bench/1.0/bench-1.0.jar",
        accept: "*/*",
        uncached: Some(50.0),
    },
    ReadKind {
        name: "packument of 30 versions",
        format: "npm",
        below: "bench",
        accept: "application/json",
        uncached: Some(150.0),
    },
    ReadKind {
        name: "tarball",
        format: "npm",
        below: "bench/-/bench-1.0.0.tgz",
        accept: "*/*",
        uncached: None,
    },
    ReadKind {
        name: "index of 50 files",
        format: "python",
        below: "simple/bench/",
        accept: SIMPLE_JSON,
        uncached: Some(150.0),
    },
    ReadKind {
        name: "wheel",
        format: "python",
        below: "packages/bench/1.0/bench-1.0-py3-none-any.whl",
        accept: "*/*",
        uncached: None,
    },
    ReadKind {
        name: "manifest",
        format: "docker",
        below: "bench/manifests/v1",
        accept: MANIFEST,
        uncached: Some(50.0),
    },
];

/// The server, and a client that may read and write everything.
#[derive(Debug)]
pub(crate) struct BenchServer {
    pub(crate) server: Server,
    /// Password of the owner.
    pub(crate) secret: String,
    pub(crate) client: Client,
}

impl BenchServer {
    /// Starts the server and publishes the packages.
    pub(crate) fn new() -> Self {
        Self::on(Server::with())
    }

    /// Starts a server that caches no responses, and publishes the same packages.
    pub(crate) fn without_cache() -> Self {
        Self::on(Server::with().env("PACKHOUSE_RESPONSES_CACHE_BYTES", "0"))
    }

    fn on(server: ServerBuilder) -> Self {
        let mut server = server.env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        // The first start compiles the plugins. The process then uses more memory than after a
        // later start.
        server.restart();
        let api = Api::sign_in(&server);
        let mut ids = Vec::new();
        let mut make = |body: Value| {
            let id = api.post("/v1/repositories", &body).expect(201).field("id");
            ids.push(id.clone());
            id
        };
        for format in FORMATS {
            let public = json!({"public": true});
            let mut members = Vec::new();
            for number in 0..OTHERS {
                members.push(make(
                    json!({"name": format!("{format}-{number}"), "format": format, "kind": "hosted"}),
                ));
            }
            members
                .push(make(json!({"name": format, "format": format, "kind": "hosted", "settings": public})));
            make(
                json!({"name": format!("{format}-group"), "format": format, "kind": "group", "members": members}),
            );
            let upstream = match format {
                "docker" => server.base_url(),
                _ => format!("{}/repositories/{format}", server.base_url()),
            };
            make(json!({"name": format!("{format}-proxy"), "format": format, "kind": "proxy",
                "upstream": {"url": upstream}, "settings": {"metadata_ttl_s": 86_400}}));
        }
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        let secret = api.create_token(&all, &["read", "write"], None).secret;
        let client = server.anonymous().basic(OWNER, &secret);
        let bench = Self { server, secret, client };
        bench.publish();
        bench
    }

    /// `Authorization` of the client.
    pub(crate) fn authorization(&self) -> String {
        http::basic(OWNER, &self.secret)
    }

    /// Path of this kind in a repository of its format. `ending` is empty, `-group` or `-proxy`.
    pub(crate) fn path(kind: &ReadKind, ending: &str) -> String {
        let (format, below) = (kind.format, kind.below);
        match (format, ending) {
            // The names of images at the upstream include the path of the upstream's repository.
            ("docker", "-proxy") => format!("/v2/repositories/docker-proxy/repositories/docker/{below}"),
            ("docker", _) => format!("/v2/repositories/docker{ending}/{below}"),
            _ => format!("/repositories/{format}{ending}/{below}"),
        }
    }

    /// Body of the response to a GET.
    pub(crate) fn read(&self, path: &str, accept: &str) -> Vec<u8> {
        self.client.send(Request::new("GET", path).header("Accept", accept)).expect(200).body
    }

    fn publish(&self) {
        for number in 0..MAVEN_VERSIONS {
            let at = format!("/repositories/maven/com/example/bench/1.{number}/bench-1.{number}");
            self.client.put(&format!("{at}.jar"), payload::bytes(number as u64, 4096)).expect(201);
        }
        (0..NPM_VERSIONS).for_each(|number| publish_npm(&self.client, "npm", "bench", number));
        (0..PYTHON_FILES).for_each(|number| publish_python(&self.client, "python", "bench", number));
        let layer = payload::bytes(1, 4096);
        for blob in [layer.as_slice(), b"{}"] {
            let path = format!("/v2/repositories/docker/bench/blobs/uploads/?digest={}", digest(blob));
            self.client.send(Request::new("POST", &path).body(blob)).expect(201);
        }
        let request = Request::new("PUT", "/v2/repositories/docker/bench/manifests/v1");
        self.client.send(request.header("Content-Type", MANIFEST).body(manifest(&[&layer]))).expect(201);
        for number in 0..OTHERS {
            publish_npm(&self.client, &format!("npm-{number}"), "other", 0);
            publish_python(&self.client, &format!("python-{number}"), "other", 0);
            let path = format!("/repositories/maven-{number}/com/example/other/1.0/other-1.0.jar");
            self.client.put(&path, "x").expect(201);
        }
    }
}

/// Publishes version `1.NUMBER.0` of an npm package, with a manifest of ordinary length.
pub(crate) fn publish_npm(client: &Client, repository: &str, package: &str, number: usize) {
    let version = format!("1.{number}.0");
    let manifest = json!({
        "name": package, "version": version, "description": "A package with a description of ordinary length",
        "main": "index.js", "license": "MIT", "engines": {"node": ">=18"}, "scripts": {"test": "node test.js"},
        "keywords": ["bench"], "devDependencies": {"typescript": "^5.0.0"},
        "dependencies": {"left-pad": "^1.3.0", "lodash": "^4.17.21", "express": "^5.0.0"},
    });
    let release = Release::new(package, &version).package_json(&manifest.to_string());
    let path = format!("/repositories/{repository}/{package}");
    client.put(&path, release.document().to_string()).expect(201);
}

/// Uploads the wheel of version `1.NUMBER` of a Python project.
pub(crate) fn publish_python(client: &Client, repository: &str, project: &str, number: usize) {
    let version = format!("1.{number}");
    let file = wheel::wheel(project, &version, "Requires-Python: >=3.8\n");
    let fields = [(":action", "file_upload"), ("name", project), ("version", version.as_str())];
    let part = |head: &str, value: &str| {
        format!("--edge\r\nContent-Disposition: form-data; name={head}\r\n\r\n{value}")
    };
    let fields: String =
        fields.iter().map(|(name, value)| part(&format!("\"{name}\""), value) + "\r\n").collect();
    let head = format!("\"content\"; filename=\"{}\"", wheel::wheel_name(project, &version));
    let body = [(fields + &part(&head, "")).as_bytes(), &file, b"\r\n--edge--\r\n"].concat();
    let request = Request::new("POST", &format!("/repositories/{repository}"));
    client.send(request.header("Content-Type", "multipart/form-data; boundary=edge").body(body)).expect(200);
}
