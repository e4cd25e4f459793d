//! A publish in each of the ten formats.

use crate::a_crate::ACrate;
use crate::release::Release;
use crate::{chart, gem, wheel, zip};
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::{Client, Request, Response};

/// A format with a pattern, and with packages within and outside of the pattern.
#[derive(Clone, Copy)]
pub(super) struct FormatCase {
    pub(super) format: &'static str,
    /// Pattern of the packages that a limited credential may write. Its spelling may differ from
    /// that of the names where the format folds names.
    pub(super) pattern: &'static str,
    pub(super) own: &'static str,
    pub(super) other: &'static str,
    /// Publishes a version of the package in the repository. Returns the last answer, or the first
    /// refusal.
    pub(super) publish: fn(&Client, &str, &str) -> Response,
}

pub(super) static FORMATS: [FormatCase; 10] = [
    FormatCase {
        format: "maven",
        pattern: "com.acme:*",
        own: "com.acme:lib",
        other: "com.acme.other:lib",
        publish: maven,
    },
    FormatCase { format: "python", pattern: "Acme_*", own: "acme-lib", other: "other-lib", publish: python },
    FormatCase { format: "npm", pattern: "@acme/*", own: "@acme/lib", other: "@acme2/lib", publish: npm },
    FormatCase { format: "docker", pattern: "Acme/*", own: "acme/app", other: "other/app", publish: image },
    FormatCase { format: "cargo", pattern: "acme_*", own: "acme-lib", other: "other-lib", publish: cargo },
    FormatCase {
        format: "go",
        pattern: "example.com/acme/*",
        own: "example.com/acme/lib",
        other: "example.com/other/lib",
        publish: go,
    },
    FormatCase { format: "helm", pattern: "acme-*", own: "acme-app", other: "other-app", publish: helm },
    FormatCase { format: "rubygems", pattern: "acme-*", own: "acme-lib", other: "other-lib", publish: ruby },
    FormatCase { format: "composer", pattern: "acme/*", own: "acme/lib", other: "other/lib", publish: php },
    FormatCase { format: "generic", pattern: "acme/*", own: "acme/app", other: "other/app", publish: file },
];

/// The path of a version's jar below the repository's address.
pub(super) fn jar(package: &str) -> String {
    let (group, artifact) = package.split_once(':').expect("a group and an artifact");
    format!("{}/{artifact}/1.0/{artifact}-1.0.jar", group.replace('.', "/"))
}

fn maven(client: &Client, repository: &str, package: &str) -> Response {
    client.put(&format!("/repositories/{repository}/{}", jar(package)), "a jar")
}

fn python(client: &Client, repository: &str, package: &str) -> Response {
    let part = |name: &str, value: &str| {
        format!("--edge\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}")
    };
    let fields = [("\":action\"", "file_upload"), ("\"name\"", package), ("\"version\"", "1.0.0")];
    let before: String = fields.iter().map(|(name, value)| part(name, value) + "\r\n").collect();
    let file = format!("\"content\"; filename=\"{}\"", wheel::wheel_name(package, "1.0.0"));
    let bytes = wheel::wheel(package, "1.0.0", "");
    let body = [(before + &part(&file, "")).as_bytes(), bytes.as_slice(), b"\r\n--edge--\r\n"].concat();
    let request = Request::new("POST", &format!("/repositories/{repository}"));
    client.send(request.header("Content-Type", "multipart/form-data; boundary=edge").body(body))
}

fn npm(client: &Client, repository: &str, package: &str) -> Response {
    let path = format!("/repositories/{repository}/{}", package.replace('/', "%2f"));
    client.put(&path, Release::new(package, "1.0.0").document().to_string())
}

/// Pushes a layer, the config and a manifest with the tag `1.0`.
fn image(client: &Client, repository: &str, package: &str) -> Response {
    let image = format!("/v2/repositories/{repository}/{package}");
    for blob in [&b"a layer"[..], &b"{}"[..]] {
        let target = format!("{image}/blobs/uploads/?digest={}", digest(blob));
        let answer = client.send(Request::new("POST", &target).body(blob));
        if answer.status != 201 {
            return answer;
        }
    }
    let request = Request::new("PUT", &format!("{image}/manifests/1.0")).header("Content-Type", MANIFEST);
    client.send(request.body(manifest(&[b"a layer"])))
}

fn cargo(client: &Client, repository: &str, package: &str) -> Response {
    let path = format!("/repositories/{repository}/api/v1/crates/new");
    client.put(&path, ACrate::new(package, "1.0.0").body())
}

fn go(client: &Client, repository: &str, package: &str) -> Response {
    let (go_mod, code) = (format!("module {package}\n\ngo 1.19\n"), "package lib\n");
    let at = |file: &str| format!("{package}@v1.0.0/{file}");
    let (go_mod_path, code_path) = (at("go.mod"), at("lib.go"));
    let files = [(go_mod_path.as_str(), go_mod.as_bytes()), (code_path.as_str(), code.as_bytes())];
    client.put(&format!("/repositories/{repository}/{package}/@v/v1.0.0.zip"), wheel::zip(&files))
}

fn helm(client: &Client, repository: &str, package: &str) -> Response {
    let request = Request::new("POST", &format!("/repositories/{repository}/api/charts"));
    client.send(request.body(chart::chart(package, "1.0.0", "")))
}

fn ruby(client: &Client, repository: &str, package: &str) -> Response {
    let request = Request::new("POST", &format!("/repositories/{repository}/api/v1/gems"));
    client.send(request.body(gem::gem(package, "1.0.0", "")))
}

fn php(client: &Client, repository: &str, package: &str) -> Response {
    let path = format!("/repositories/{repository}/?version=1.0.0");
    client.put(&path, zip::package(package, "1.0.0", ""))
}

fn file(client: &Client, repository: &str, package: &str) -> Response {
    client.put(&format!("/repositories/{repository}/{package}/a.txt"), "a file")
}
