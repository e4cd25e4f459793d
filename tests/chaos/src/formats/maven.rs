//! Maven: a file at a path, and metadata that the server generates.

use super::PackageVersion;
use crate::history::Outcome;
use packhouse_tests::{Client, Request, Response};
use std::collections::BTreeSet;

pub(super) fn path(package: &str, version: &str) -> String {
    format!("/repositories/maven/org/example/{package}/{version}/{package}-{version}.jar")
}

pub(super) fn publish(client: &Client, item: &PackageVersion) -> Outcome {
    let request = Request::new("PUT", &path(&item.package, &item.version)).body(item.bytes.as_slice());
    Outcome::of(&client.try_send(request), &[201])
}

pub(super) fn index(package: &str) -> String {
    format!("/repositories/maven/org/example/{package}/maven-metadata.xml")
}

pub(super) fn listed(answer: &Response) -> Option<BTreeSet<String>> {
    let text = answer.text();
    let (_, list) = text.split_once("<versions>")?;
    let (list, _) = list.split_once("</versions>")?;
    let version = |part: &str| part.split_once("</version>").map(|(version, _)| version.to_owned());
    list.split("<version>").skip(1).map(version).collect()
}
