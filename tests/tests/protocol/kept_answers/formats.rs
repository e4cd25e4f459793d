//! One interface to the formats, for publishes, upstream content, lists, downloads and deletions.

use super::place::Repositories;
use crate::release::Release;
use crate::wheel;
use packhouse_tests::image_proxy;
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Client, Request, Response, digests};
use serde_json::{Map, Value, json};
use std::process::Command;

/// A time long ago, in seconds since 1970.
pub(crate) const LONG_AGO: u64 = 1_577_836_800;

/// A version of a package and its origin.
#[derive(Clone, Debug)]
pub(crate) struct PackageVersion {
    /// Number of the version, such as 2 for `2.0.0`.
    pub(crate) number: u32,
    /// Name of the repository that has this version, or `upstream`.
    pub(crate) origin: String,
    /// Publication time that the upstream states, in seconds since 1970.
    pub(crate) published: u64,
}

/// Parses versions such as `1@one 2@upstream`.
pub(crate) fn versions(what: &str) -> Vec<PackageVersion> {
    what.split_whitespace()
        .map(|word| {
            let (number, origin) = word.split_once('@').expect("a version and where it is");
            let number = number.parse().expect("its number");
            PackageVersion { number, origin: origin.to_owned(), published: LONG_AGO }
        })
        .collect()
}

/// Returns the version of a number, such as `2.0.0` for 2.
fn spelled(number: u32) -> String {
    format!("{number}.0.0")
}

fn unspelled(version: &str) -> Option<u32> {
    version.strip_suffix(".0.0")?.parse().ok()
}

/// Formats a time with the program `date` and this format.
fn date(seconds: u64, format: &str) -> String {
    let mut command = Command::new("date");
    command.args(["-u", "-d", &format!("@{seconds}"), format]).env("LC_ALL", "C");
    let output = command.output().expect("date");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

fn http_date(seconds: u64) -> String {
    date(seconds, "+%a, %d %b %Y %H:%M:%S GMT")
}

fn rfc3339(seconds: u64) -> String {
    date(seconds, "+%Y-%m-%dT%H:%M:%SZ")
}

/// A package format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackageFormat {
    Maven,
    Npm,
    Python,
    Images,
}

impl PackageFormat {
    pub(crate) const ALL: [Self; 4] = [Self::Maven, Self::Npm, Self::Python, Self::Images];

    /// The format's name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Maven => "maven",
            Self::Npm => "npm",
            Self::Python => "python",
            Self::Images => "docker",
        }
    }

    /// Returns the package's name as claims and the API spell it.
    pub(crate) fn full_name(self, package: &str) -> String {
        match self {
            Self::Maven => format!("org.example:{package}"),
            _ => package.to_owned(),
        }
    }

    /// Returns the path of a package's list, below the repository host's address.
    fn list_path(self, repository: &str, package: &str) -> String {
        match self {
            Self::Maven => format!("/repositories/{repository}/org/example/{package}/maven-metadata.xml"),
            Self::Npm => format!("/repositories/{repository}/{package}"),
            Self::Python => format!("/repositories/{repository}/simple/{package}/"),
            Self::Images => format!("/v2/repositories/{repository}/{package}/tags/list"),
        }
    }

    fn file_path(self, repository: &str, package: &str, number: u32) -> String {
        let version = spelled(number);
        match self {
            Self::Maven => format!("/repositories/{repository}/{}", jar(package, number)),
            Self::Npm => format!("/repositories/{repository}/{package}/-/{package}-{version}.tgz"),
            Self::Python => {
                let name = wheel::wheel_name(package, &version);
                format!("/repositories/{repository}/packages/{package}/{version}/{name}")
            }
            Self::Images => format!("/v2/repositories/{repository}/{package}/manifests/{version}"),
        }
    }

    /// Requests the list of a package's versions.
    pub(crate) fn ask(self, client: &Client, repository: &str, package: &str) -> Response {
        let request = Request::new("GET", &self.list_path(repository, package));
        client.send(match self {
            Self::Python => request.header("Accept", SIMPLE_JSON),
            _ => request,
        })
    }

    /// Returns the versions of a package that a repository lists; `None` if the package is not
    /// found.
    #[track_caller]
    pub(crate) fn listed(self, client: &Client, repository: &str, package: &str) -> Option<Vec<u32>> {
        let answer = self.ask(client, repository, package);
        if answer.status == 404 {
            return None;
        }
        let answer = answer.expect(200);
        let words: Vec<String> = match self {
            Self::Maven => {
                let text = answer.text();
                let words = text.split("<version>").skip(1);
                words.filter_map(|rest| rest.split("</version>").next()).map(str::to_owned).collect()
            }
            Self::Npm => answer.json()["versions"].as_object().unwrap().keys().cloned().collect(),
            Self::Python => strings(&answer.json()["versions"]),
            Self::Images => strings(&answer.json()["tags"]),
        };
        let mut numbers: Vec<u32> = words.iter().filter_map(|word| unspelled(word)).collect();
        numbers.sort_unstable();
        Some(numbers)
    }

    /// Requests the file of a version, or its manifest.
    pub(crate) fn file(self, client: &Client, repository: &str, package: &str, number: u32) -> Response {
        client.get(&self.file_path(repository, package, number))
    }

    /// Returns the content of a version's file.
    pub(crate) fn content(self, package: &str, version: &PackageVersion) -> Vec<u8> {
        let (number, origin) = (spelled(version.number), version.origin.as_str());
        match self {
            Self::Maven => format!("{package} {number} of {origin}").into_bytes(),
            Self::Npm => release(package, version).tarball(),
            Self::Python => wheel::wheel(package, &number, &format!("Keywords: {origin}\n")),
            Self::Images => manifest(&[&layer(package, version)]).into_bytes(),
        }
    }

    /// Publishes a version as clients do.
    #[track_caller]
    pub(crate) fn publish(self, client: &Client, repository: &str, package: &str, version: &PackageVersion) {
        let path = self.file_path(repository, package, version.number);
        match self {
            Self::Maven => drop(client.put(&path, self.content(package, version)).expect(201)),
            Self::Npm => {
                let document = release(package, version).document().to_string();
                client.put(&self.list_path(repository, package), document).expect(201);
            }
            Self::Python => {
                let (kind, body) = form(package, version.number, &self.content(package, version));
                let request = Request::new("POST", &format!("/repositories/{repository}"));
                client.send(request.header("Content-Type", kind).body(body)).expect(200);
            }
            Self::Images => {
                for blob in [layer(package, version), b"{}".to_vec()] {
                    let uploads = format!("/v2/repositories/{repository}/{package}/blobs/uploads/");
                    let target = format!("{uploads}?digest={}", digest(&blob));
                    client.send(Request::new("POST", &target).body(blob)).expect(201);
                }
                let request = Request::new("PUT", &path).header("Content-Type", MANIFEST);
                client.send(request.body(self.content(package, version))).expect(201);
            }
        }
    }

    /// Deletes a version: an image with the request of image clients, any other version through the
    /// API.
    #[track_caller]
    pub(crate) fn delete(
        self,
        repositories: &Repositories<'_>,
        repository: &str,
        package: &str,
        version: &PackageVersion,
    ) {
        if self == Self::Images {
            let named = digest(&self.content(package, version));
            let path = format!("/v2/repositories/{repository}/{package}/manifests/{named}");
            repositories.writer().send(Request::new("DELETE", &path)).expect(202);
            return;
        }
        let name = self.full_name(package).replace(':', "%3A");
        let id = repositories.id(&version.origin);
        let path = format!("/v1/repositories/{id}/packages/{name}/versions/{}", spelled(version.number));
        repositories.api.call("DELETE", &path).expect(204);
    }

    /// Makes the upstream offer exactly these versions of a package.
    pub(crate) fn offer(self, upstream: &Upstream, package: &str, versions: &[PackageVersion]) {
        let list = match self {
            Self::Maven => self.offer_maven(upstream, package, versions),
            Self::Npm => self.offer_npm(upstream, package, versions),
            Self::Python => self.offer_python(upstream, package, versions),
            Self::Images => self.offer_images(upstream, package, versions),
        };
        let target = match self {
            Self::Maven => format!("/org/example/{package}/maven-metadata.xml"),
            Self::Npm => format!("/{package}"),
            Self::Python => format!("/simple/{package}/"),
            Self::Images => format!("/v2/{package}/tags/list?n=1000"),
        };
        match versions.is_empty() {
            true => upstream.forget(&target),
            false => upstream.on(&target, list),
        }
    }

    fn offer_maven(self, upstream: &Upstream, package: &str, versions: &[PackageVersion]) -> Answer {
        let mut list = String::new();
        let updated = versions.iter().map(|version| version.published).max().unwrap_or(LONG_AGO);
        let updated = date(updated, "+%Y%m%d%H%M%S");
        for version in versions {
            let (path, bytes) = (jar(package, version.number), self.content(package, version));
            upstream.on(&format!("/{path}.sha1"), Answer::ok(digests::sha1(&bytes)));
            let dated = |answer: Answer| answer.header("Last-Modified", &http_date(version.published));
            upstream.on(&format!("/{path}"), dated(Answer::ok(bytes)));
            let pom = format!("/{}", path.replace(".jar", ".pom"));
            upstream.on(&pom, dated(Answer::ok("<project/>")));
            upstream.on(&format!("{pom}.sha1"), Answer::ok(digests::sha1(b"<project/>")));
            list += &format!("<version>{}</version>", spelled(version.number));
        }
        Answer::ok(format!(
            "<metadata><groupId>org.example</groupId><artifactId>{package}</artifactId><versioning>\
             <versions>{list}</versions><lastUpdated>{updated}</lastUpdated></versioning></metadata>"
        ))
    }

    fn offer_npm(self, upstream: &Upstream, package: &str, versions: &[PackageVersion]) -> Answer {
        let (mut times, mut all) = (Map::new(), Map::new());
        for version in versions {
            let (number, release) = (spelled(version.number), release(package, version));
            let path = format!("/{package}/-/{package}-{number}.tgz");
            upstream.on(&path, Answer::ok(release.tarball()));
            times.insert(number.clone(), json!(rfc3339(version.published)));
            let dist = json!({"tarball": format!("{}{path}", upstream.url()),
                "integrity": release.integrity(), "shasum": release.shasum()});
            all.insert(number.clone(), json!({"name": package, "version": number, "dist": dist}));
        }
        let latest = versions.last().map(|version| spelled(version.number));
        let document = json!({"_id": package, "name": package, "dist-tags": {"latest": latest},
            "versions": all, "time": times});
        Answer::ok(document.to_string()).header("Content-Type", "application/json")
    }

    fn offer_python(self, upstream: &Upstream, package: &str, versions: &[PackageVersion]) -> Answer {
        let file = |version: &PackageVersion| {
            let name = wheel::wheel_name(package, &spelled(version.number));
            let (path, bytes) = (format!("/files/{name}"), self.content(package, version));
            let file = json!({"filename": name, "url": path, "hashes": {"sha256": digests::sha256(&bytes)},
                "upload-time": rfc3339(version.published)});
            upstream.on(&path, Answer::ok(bytes));
            file
        };
        let files: Vec<Value> = versions.iter().map(file).collect();
        let page = json!({"meta": {"api-version": "1.1"}, "name": package, "files": files});
        Answer::ok(page.to_string()).header("Content-Type", SIMPLE_JSON)
    }

    fn offer_images(self, upstream: &Upstream, package: &str, versions: &[PackageVersion]) -> Answer {
        let mut tags = Vec::new();
        for version in versions {
            let text = String::from_utf8(self.content(package, version)).expect("JSON");
            let tag = spelled(version.number);
            let named = image_proxy::offer(upstream, package, None, MANIFEST, &text);
            for reference in [&tag, &named] {
                let answer = Answer::ok(text.clone()).header("Content-Type", MANIFEST);
                let answer = answer.header("Docker-Content-Digest", &named);
                let dated = answer.header("Last-Modified", &http_date(version.published));
                upstream.on(&format!("/v2/{package}/manifests/{reference}"), dated);
            }
            image_proxy::offer_blob(upstream, package, &layer(package, version));
            tags.push(tag);
        }
        Answer::ok(json!({"name": package, "tags": tags}).to_string())
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn jar(package: &str, number: u32) -> String {
    let version = spelled(number);
    format!("org/example/{package}/{version}/{package}-{version}.jar")
}

fn layer(package: &str, version: &PackageVersion) -> Vec<u8> {
    format!("{package} {} of {}", version.number, version.origin).into_bytes()
}

fn release(package: &str, version: &PackageVersion) -> Release {
    let number = spelled(version.number);
    let manifest = json!({"name": package, "version": number, "description": version.origin});
    Release::new(package, &number).package_json(&manifest.to_string())
}

/// Returns the content type and the body of twine's upload form.
fn form(package: &str, number: u32, wheel: &[u8]) -> (&'static str, Vec<u8>) {
    let version = spelled(number);
    let fields = [(":action", "file_upload"), ("name", package), ("version", version.as_str())];
    let part = |name: &str, value: &str| {
        format!("--edge\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}")
    };
    let before: String =
        fields.iter().map(|(name, value)| part(&format!("\"{name}\""), value) + "\r\n").collect();
    let file = format!("\"content\"; filename=\"{}\"", wheel::wheel_name(package, &version));
    let body = [(before + &part(&file, "")).as_bytes(), wheel, b"\r\n--edge--\r\n"].concat();
    ("multipart/form-data; boundary=edge", body)
}
