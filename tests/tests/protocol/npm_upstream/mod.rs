//! Content of an npm upstream: packages that depend on each other, both as a client publishes them
//! and as a registry serves them. Also proxies of such an upstream.

use crate::release::Release;
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server, skip};
use serde_json::{Map, Value, json};

/// A publication time long ago, so that a version is old enough for every setting.
pub(crate) const OLD: &str = "2015-01-05T10:00:00.000Z";
/// A publication time in the future, so that a version is too young for every setting.
pub(crate) const YOUNG: &str = "2999-01-05T10:00:00.000Z";

/// A version of a package.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) dependencies: Value,
}

impl Part {
    /// Creates a version without dependencies.
    pub(crate) fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), dependencies: json!({}) }
    }

    /// Returns the packed archive. Its bytes are the same each time.
    pub(crate) fn tarball(&self) -> Vec<u8> {
        self.release().tarball()
    }

    /// Returns the path of the archive below a registry's address.
    pub(crate) fn path(&self) -> String {
        let bare = self.name.rsplit('/').next().unwrap();
        format!("{}/-/{bare}-{}.tgz", self.name, self.version)
    }

    fn release(&self) -> Release {
        let Self { name, version, dependencies } = self;
        let manifest = json!({"name": name, "version": version, "dependencies": dependencies});
        Release::new(name, version)
            .package_json(&manifest.to_string())
            .file("index.js", &format!("module.exports = {name:?};\n"))
    }

    /// Returns the document with which a client publishes this version.
    pub(crate) fn document(&self) -> Value {
        let mut document = self.release().document();
        document["versions"][&self.version]["dependencies"] = self.dependencies.clone();
        document
    }

    /// Returns the manifest, with the tarball at this address.
    pub(crate) fn manifest(&self, tarball: &str) -> Value {
        let (Self { name, version, dependencies }, release) = (self, self.release());
        json!({
            "name": name, "version": version, "dependencies": dependencies,
            "dist": {"tarball": tarball, "integrity": release.integrity(), "shasum": release.shasum()},
        })
    }
}

/// Returns a tree of this many packages, every third one in a scope. The first package depends on
/// all others, on some only indirectly.
pub(crate) fn tree(count: usize) -> Vec<Part> {
    let name = |number: usize| match number % 3 {
        0 => format!("@acme/part-{number}"),
        _ => format!("part-{number}"),
    };
    let needed = |number: usize| {
        let below = [2 * number + 1, 2 * number + 2].into_iter().filter(|below| *below < count);
        below.map(|below| (name(below), json!("^1.0.0"))).collect::<Map<_, _>>()
    };
    let part =
        |number| Part { dependencies: Value::Object(needed(number)), ..Part::new(&name(number), "1.2.3") };
    (0..count).map(part).collect()
}

/// Returns a packument of these versions of a package, all of them old.
pub(crate) fn packument(parts: &[Part], tarball: impl Fn(&Part) -> String) -> Value {
    let name = &parts[0].name;
    let times = parts.iter().map(|part| (part.version.clone(), json!(OLD))).collect::<Map<_, _>>();
    let versions =
        parts.iter().map(|part| (part.version.clone(), part.manifest(&tarball(part)))).collect::<Map<_, _>>();
    let mut document = json!({
        "_id": name, "name": name, "dist-tags": {"latest": parts.last().unwrap().version},
        "versions": versions, "time": times,
    });
    document["time"]["created"] = json!(OLD);
    document["time"]["modified"] = json!(OLD);
    document
}

/// Returns the path of a package's document at an upstream.
pub(crate) fn at(name: &str) -> String {
    format!("/{}", name.replace('/', "%2f"))
}

/// Offers these versions of one package, with their tarballs, at the upstream.
pub(crate) fn offer(upstream: &Upstream, parts: &[Part]) {
    let document = packument(parts, |part| format!("{}/{}", upstream.url(), part.path()));
    show(upstream, &document);
    for part in parts {
        upstream.on(&format!("/{}", part.path()), Answer::ok(part.tarball()));
    }
}

/// Serves this packument at the upstream.
pub(crate) fn show(upstream: &Upstream, document: &Value) {
    let answer = Answer::ok(document.to_string()).header("Content-Type", "application/json");
    upstream.on(&at(document["name"].as_str().unwrap()), answer);
}

/// Publishes all these versions.
#[track_caller]
pub(crate) fn publish(repository: &NpmRepository, parts: &[Part]) {
    for part in parts {
        repository.put(&at(&part.name)[1..], &part.document()).expect(201);
    }
}

/// Starts a server that may connect to upstreams on this machine.
pub(crate) fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

/// Creates a proxy of this upstream, with a token that may read and write the proxy.
#[track_caller]
pub(crate) fn proxy(server: &Server, name: &str, upstream: &str, settings: &Value) -> NpmRepository {
    let more = json!({"kind": "proxy", "upstream": {"url": upstream}, "settings": settings});
    NpmRepository::create_as(server, name, &more)
}

/// Configures this client for a repository; returns `None` and prints a message if the client is
/// not installed.
pub(crate) fn client(server: &Server, tool: Tool, repository: &NpmRepository) -> Option<Js> {
    let js = Js::new(tool, &repository.url(server), &repository.token.secret);
    js.map_err(|reason| skip(tool.name(), &reason)).ok()
}

/// Writes a project that depends on any version of these packages.
pub(crate) fn project(js: &Js, parts: &[Part]) {
    let dependencies: Map<_, _> = parts.iter().map(|part| (part.name.clone(), json!("*"))).collect();
    let manifest =
        json!({"name": "project", "version": "0.0.0", "private": true, "dependencies": dependencies});
    js.package("project", &manifest);
}

/// Returns the paths of a proxy's cached content.
#[track_caller]
pub(crate) fn cached_paths(api: &Api, proxy: &NpmRepository) -> Vec<String> {
    let path = format!("/v1/repositories/{}/cache?limit=200", proxy.id);
    let answer = api.call("GET", &path).expect(200).json();
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}
