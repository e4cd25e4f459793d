//! What an upstream of npm's has: packages that need each other, as documents that are published and as documents that are served;
//! and proxies of it.

use crate::release::Release;
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server, skip};
use serde_json::{Map, Value, json};

/// Long ago, for a version that is old enough for everybody.
pub(crate) const OLD: &str = "2015-01-05T10:00:00.000Z";
/// Not yet, for one that is too young for everybody.
pub(crate) const YOUNG: &str = "2999-01-05T10:00:00.000Z";

/// A version of a package.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) dependencies: Value,
}

impl Part {
    /// One that needs nothing.
    pub(crate) fn new(name: &str, version: &str) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), dependencies: json!({}) }
    }

    /// It packed, in the same bytes each time.
    pub(crate) fn tarball(&self) -> Vec<u8> {
        self.release().tarball()
    }

    /// Below a registry's address.
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

    /// What is published.
    pub(crate) fn document(&self) -> Value {
        let mut document = self.release().document();
        document["versions"][&self.version]["dependencies"] = self.dependencies.clone();
        document
    }

    /// Its manifest, with its tarball at this address.
    pub(crate) fn manifest(&self, tarball: &str) -> Value {
        let (Self { name, version, dependencies }, release) = (self, self.release());
        json!({
            "name": name, "version": version, "dependencies": dependencies,
            "dist": {"tarball": tarball, "integrity": release.integrity(), "shasum": release.shasum()},
        })
    }
}

/// So many packages, every third in a scope: the first needs all others, some by way of others.
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

/// A packument of these versions of a package, old ones all.
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

/// Where an upstream answers for a package.
pub(crate) fn at(name: &str) -> String {
    format!("/{}", name.replace('/', "%2f"))
}

/// Offers these versions of one package, with their tarballs.
pub(crate) fn offer(upstream: &Upstream, parts: &[Part]) {
    let document = packument(parts, |part| format!("{}/{}", upstream.url(), part.path()));
    show(upstream, &document);
    for part in parts {
        upstream.on(&format!("/{}", part.path()), Answer::ok(part.tarball()));
    }
}

/// Answers with this packument.
pub(crate) fn show(upstream: &Upstream, document: &Value) {
    let answer = Answer::ok(document.to_string()).header("Content-Type", "application/json");
    upstream.on(&at(document["name"].as_str().unwrap()), answer);
}

/// Publishes them all.
#[track_caller]
pub(crate) fn publish(repository: &NpmRepository, parts: &[Part]) {
    for part in parts {
        repository.put(&at(&part.name)[1..], &part.document()).expect(201);
    }
}

/// A server that may reach upstreams on this machine.
pub(crate) fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

/// A proxy of this upstream with a token that may read and write there.
#[track_caller]
pub(crate) fn proxy(server: &Server, name: &str, upstream: &str, settings: &Value) -> NpmRepository {
    let more = json!({"kind": "proxy", "upstream": {"url": upstream}, "settings": settings});
    NpmRepository::create_as(server, name, &more)
}

/// This client at a repository; none, and said so, where it is not here.
pub(crate) fn client(server: &Server, tool: Tool, repository: &NpmRepository) -> Option<Js> {
    let js = Js::new(tool, &repository.url(server), &repository.token.secret);
    js.map_err(|reason| skip(tool.name(), &reason)).ok()
}

/// A project that needs these packages in any version.
pub(crate) fn project(js: &Js, parts: &[Part]) {
    let wanted: Map<_, _> = parts.iter().map(|part| (part.name.clone(), json!("*"))).collect();
    let manifest = json!({"name": "project", "version": "0.0.0", "private": true, "dependencies": wanted});
    js.package("project", &manifest);
}

/// Paths of what a proxy keeps.
#[track_caller]
pub(crate) fn kept(api: &Api, proxy: &NpmRepository) -> Vec<String> {
    let path = format!("/v1/repositories/{}/cache?limit=200", proxy.id);
    let answer = api.call("GET", &path).expect(200).json();
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}
