//! A server with packages of every format: in hosted repositories, in groups of five, and behind proxies that have fetched them.

use crate::release::Release;
use crate::wheel;
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Request, Server, ServerBuilder, http, payload};
use serde_json::{Value, json};

/// Versions of the npm package.
const NPM_VERSIONS: usize = 30;
/// Files of the Python project.
const PYTHON_FILES: usize = 50;
/// Versions of the Maven artifact.
const MAVEN_VERSIONS: usize = 10;
/// Repositories that are in a group besides the one that has the package.
const OTHERS: usize = 4;

/// The formats, as the API knows them.
const FORMATS: [&str; 4] = ["maven", "npm", "python", "docker"];

/// An answer that is asked for again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// What it is called in the table.
    pub(crate) name: &'static str,
    /// The format whose repositories have it.
    pub(crate) format: &'static str,
    /// Below the repository's address.
    pub(crate) below: &'static str,
    /// The `Accept` that asks for it.
    pub(crate) accept: &'static str,
    /// µs of CPU that it may cost when it is made anew; none where that is no goal.
    pub(crate) anew: Option<f64>,
}

/// Those that every repository has.
pub(crate) const KINDS: [Kind; 7] = [
    Kind {
        name: "Maven metadata",
        format: "maven",
        below: "com/example/bench/maven-metadata.xml",
        accept: "*/*",
        anew: Some(50.0),
    },
    Kind {
        name: "jar of 4 KiB",
        format: "maven",
        below: "com/example/bench/1.0/bench-1.0.jar",
        accept: "*/*",
        anew: Some(50.0),
    },
    Kind {
        name: "packument of 30 versions",
        format: "npm",
        below: "bench",
        accept: "application/json",
        anew: Some(150.0),
    },
    Kind { name: "tarball", format: "npm", below: "bench/-/bench-1.0.0.tgz", accept: "*/*", anew: None },
    Kind {
        name: "index of 50 files",
        format: "python",
        below: "simple/bench/",
        accept: SIMPLE_JSON,
        anew: Some(150.0),
    },
    Kind {
        name: "wheel",
        format: "python",
        below: "packages/bench/1.0/bench-1.0-py3-none-any.whl",
        accept: "*/*",
        anew: None,
    },
    Kind {
        name: "manifest",
        format: "docker",
        below: "bench/manifests/v1",
        accept: MANIFEST,
        anew: Some(50.0),
    },
];

/// The server and who may read and write everything in it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) server: Server,
    /// The password that goes with the owner's name.
    pub(crate) secret: String,
    pub(crate) client: Client,
}

impl World {
    /// Starts it and publishes everything.
    pub(crate) fn new() -> Self {
        Self::on(Server::with())
    }

    /// The same on a server that makes each answer anew.
    pub(crate) fn that_keeps_nothing() -> Self {
        Self::on(Server::with().env("PACKHOUSE_RESPONSES_CACHE_BYTES", "0"))
    }

    fn on(server: ServerBuilder) -> Self {
        let mut server = server.env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        // The first start compiles the plugins, which leaves memory that no later one has.
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
        let reached: Vec<&str> = ids.iter().map(String::as_str).collect();
        let secret = api.create_token(&reached, &["read", "write"], None).secret;
        let client = server.anonymous().basic(OWNER, &secret);
        let world = Self { server, secret, client };
        world.publish();
        world
    }

    /// The `Authorization` that reaches everything.
    pub(crate) fn authorization(&self) -> String {
        http::basic(OWNER, &self.secret)
    }

    /// The path of this kind in the repository of its format with this ending: nothing, `-group` or `-proxy`.
    pub(crate) fn path(kind: &Kind, ending: &str) -> String {
        let (format, below) = (kind.format, kind.below);
        match (format, ending) {
            // The upstream's images are called by its whole path.
            ("docker", "-proxy") => format!("/v2/repositories/docker-proxy/repositories/docker/{below}"),
            ("docker", _) => format!("/v2/repositories/docker{ending}/{below}"),
            _ => format!("/repositories/{format}{ending}/{below}"),
        }
    }

    /// What is answered there.
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
