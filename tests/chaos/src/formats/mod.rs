//! The operations of each format over plain HTTP: publish, read, list and delete.

mod maven;
mod npm;
mod oci;
mod python;

use crate::history::{Outcome, Way};
use packhouse_tests::{Api, Client, Request, Response, Server, digests, server::OWNER};
use serde_json::json;
use std::collections::BTreeSet;
use std::io;

/// An answer, or the error if it did not arrive.
pub type Answer = io::Result<Response>;

/// A package format.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Format {
    /// Files at paths.
    Maven,
    /// Documents with embedded archives.
    Npm,
    /// Forms.
    Python,
    /// Layers and manifests.
    Oci,
}

/// All formats.
pub const FORMATS: [Format; 4] = [Format::Maven, Format::Npm, Format::Python, Format::Oci];

impl Format {
    /// The name of the format's repository, and the first part of its paths in the history.
    pub fn name(self) -> &'static str {
        match self {
            Self::Maven => "maven",
            Self::Npm => "npm",
            Self::Python => "python",
            Self::Oci => "oci",
        }
    }

    /// The name of the format in the API.
    fn of_api(self) -> &'static str {
        if self == Self::Oci { "docker" } else { self.name() }
    }

    /// Returns true if a path can be published only once. A tag can be moved.
    pub fn once(self) -> bool {
        self != Self::Oci
    }
}

/// A version of a package, and the bytes to publish as its file.
#[derive(Clone, Debug)]
pub struct PackageVersion {
    /// Its format.
    pub format: Format,
    /// Its package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The content of its file.
    pub bytes: Vec<u8>,
}

impl PackageVersion {
    /// Makes a version whose file has about this length. The seed determines the content.
    pub fn new(format: Format, package: &str, version: &str, seed: u64, length: usize) -> Self {
        let filler = packhouse_tests::payload::bytes(seed, length);
        let bytes = match format {
            Format::Maven | Format::Oci => filler,
            Format::Npm => npm::archive(package, version, &filler),
            Format::Python => python::wheel(package, version, &filler),
        };
        Self { format, package: package.to_owned(), version: version.to_owned(), bytes }
    }

    /// Its path in the history.
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.format.name(), self.package, self.version)
    }

    /// SHA-256 of its file.
    pub fn digest(&self) -> String {
        digests::sha256(&self.bytes)
    }
}

/// One repository of each format, with a token that can read and write in all of them.
#[derive(Clone, Debug)]
pub struct TestRepositories {
    /// The owner's session.
    pub api: Api,
    /// Ids of the repositories, in the order of [`FORMATS`].
    pub repositories: Vec<String>,
    client: Client,
}

impl TestRepositories {
    /// Creates the repositories.
    pub fn open(server: &Server) -> Self {
        let api = Api::sign_in(server);
        let create = |format: &Format| {
            let body = json!({"name": format.name(), "format": format.of_api(), "kind": "hosted"});
            api.post("/v1/repositories", &body).expect(201).field("id")
        };
        let repositories: Vec<String> = FORMATS.iter().map(create).collect();
        let ids: Vec<&str> = repositories.iter().map(String::as_str).collect();
        let token = api.create_token(&ids, &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret).within(crate::cluster::PATIENCE);
        Self { api, repositories, client }
    }

    /// A client that sends the token, through the balancer or straight to one server.
    pub fn by(&self, way: Way, addresses: &crate::cluster::Addresses) -> Client {
        let address = match way {
            Way::Balanced => addresses.balancer,
            Way::Server(number) => addresses.servers[number],
        };
        self.client.clone().at(address)
    }

    /// The id of a format's repository.
    pub fn id(&self, format: Format) -> &str {
        let at = FORMATS.iter().position(|known| *known == format).expect("it is one of them");
        &self.repositories[at]
    }
}

/// Publishes a version.
pub fn publish(client: &Client, item: &PackageVersion) -> Outcome {
    match item.format {
        Format::Maven => maven::publish(client, item),
        Format::Npm => npm::publish(client, item),
        Format::Python => python::publish(client, item),
        Format::Oci => oci::publish(client, item),
    }
}

/// Reads a version's file and returns its SHA-256 if the body was complete.
pub fn read(client: &Client, format: Format, package: &str, version: &str) -> (Outcome, String) {
    if format == Format::Oci {
        return oci::read(client, package, version);
    }
    let path = match format {
        Format::Maven => maven::path(package, version),
        Format::Npm => npm::path(package, version),
        Format::Python | Format::Oci => python::path(package, version),
    };
    let answer = get(client, &path);
    let digest = answer.as_ref().map(|answer| digests::sha256(&answer.body)).unwrap_or_default();
    (Outcome::of(&answer, &[200]), digest)
}

/// Reads a package's index and returns the listed versions.
pub fn index(client: &Client, format: Format, package: &str) -> (Outcome, BTreeSet<String>) {
    let (path, accept) = match format {
        Format::Maven => (maven::index(package), "*/*"),
        Format::Npm => (npm::index(package), "application/json"),
        Format::Python => (python::index(package), packhouse_tests::python::SIMPLE_JSON),
        Format::Oci => (oci::index(package), "application/json"),
    };
    let answer = client.try_send(Request::new("GET", &path).header("Accept", accept));
    let outcome = Outcome::of(&answer, &[200]);
    let Some(answer) = answer.ok().filter(|_| outcome == Outcome::Done) else {
        return (outcome, BTreeSet::new());
    };
    let listed = match format {
        Format::Maven => maven::listed(&answer),
        Format::Npm => npm::listed(&answer),
        Format::Python => python::listed(&answer, package),
        Format::Oci => oci::listed(&answer),
    };
    match listed {
        Some(listed) => (outcome, listed),
        None => (Outcome::Odd(format!("no index: {:.300}", answer.text())), BTreeSet::new()),
    }
}

/// Deletes a version through the API. `api` is a client of the API.
pub fn delete(api: &Client, repository: &str, format: Format, package: &str, version: &str) -> Outcome {
    let name = if format == Format::Maven { format!("org.example%3A{package}") } else { package.to_owned() };
    let path = format!("/v1/repositories/{repository}/packages/{name}/versions/{version}");
    Outcome::of(&api.try_send(Request::new("DELETE", &path)), &[204])
}

fn get(client: &Client, path: &str) -> Answer {
    client.try_send(Request::new("GET", path))
}
