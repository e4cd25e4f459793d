//! Reads an upstream's `packages.json` and its metadata of a package. The plugin does not trust the
//! upstream, and leaves out versions that Composer could not read.

use crate::members::{self, FORM, Members};
use crate::version::Version;
use packhouse_sdk::{Timestamp, address};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of members that all versions of a package may have together. Each member takes
/// memory, even if several versions share its value.
const MAX_MEMBERS: usize = 300_000;
/// The members of `dist` that clients receive. The address of the file is not among them.
const PASSED_DIST_MEMBERS: [&str; 3] = ["reference", "shasum", "type"];

/// The content of an upstream's `packages.json`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The address of a package's metadata, with `%package%` for its name. `None` if
    /// `packages.json` itself contains all packages, as in a small Satis repository.
    pub(crate) template: Option<String>,
    /// The address of the API for advisories.
    pub(crate) advisories: Option<String>,
}

/// An upstream's list of a package's versions.
#[derive(Debug, Default)]
pub(crate) struct UpstreamListing {
    pub(crate) versions: Vec<UpstreamVersion>,
    /// The number of versions that Composer could not read.
    pub(crate) left_out: usize,
}

/// A version as an upstream lists it.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamVersion {
    pub(crate) version: Version,
    /// The version in the spelling of the upstream.
    pub(crate) text: String,
    /// The file that the proxy serves. A metapackage has no file.
    pub(crate) dist: Option<Dist>,
    /// Time of the publish in ms since 1970, if the upstream states it.
    pub(crate) published: Option<u64>,
    /// All members. `dist` contains no address if the proxy serves the file.
    pub(crate) members: Members,
}

/// A version's file at the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dist {
    pub(crate) url: String,
    /// The archive type: `zip`, `tar` or another word.
    pub(crate) kind: String,
    /// SHA-1 in lower-case hex, if the upstream states it.
    pub(crate) sha1: Option<String>,
}

/// Reads a `packages.json` from the address `base`; `None` for any other document.
pub(crate) fn read_root(text: &str, base: &str) -> Option<Root> {
    let document = object(text)?;
    let member =
        |name: &str| document.get(name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let audit = member("security-advisories");
    let advisories = audit.as_ref().and_then(|audit| audit.get("api-url")?.as_str());
    let advisories = advisories.and_then(|url| address::join(base, url));
    let template = member("metadata-url");
    let template = template.as_ref().and_then(Value::as_str).filter(|url| url.contains("%package%"));
    let template = match template {
        Some(template) => Some(address::join(base, template)?),
        None => {
            packages(document.get("packages")?)?;
            None
        }
    };
    Some(Root { template, advisories })
}

/// The packages of a document, by name; `None` if the value is not a map. PHP writes an empty map
/// as an empty list.
fn packages(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    object(raw.get()).or_else(|| {
        let list: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        list.is_empty().then(BTreeMap::new)
    })
}

/// Parses an object, but not the values of its members. `None` if the text is not an object.
fn object(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

/// Reads the versions of a package in a document from the address `base`; `None` if the document
/// does not contain the package.
///
/// # Errors
/// The problem of the document, as text for a sentence.
pub(crate) fn read_listing(text: &str, base: &str, name: &str) -> Result<Option<UpstreamListing>, String> {
    let document = object(text).ok_or("it is not a JSON object")?;
    let packages = document.get("packages").and_then(|raw| packages(raw)).ok_or("it has no packages")?;
    let Some(raw) = packages.get(name) else { return Ok(None) };
    let versions: Vec<&RawValue> = match object(raw.get()) {
        Some(versions) => in_written_order(versions),
        None => serde_json::from_str(raw.get()).map_err(|_| "its package has no list of versions")?,
    };
    let minified = document.get("minified").is_some_and(|raw| raw.get() == format!("\"{FORM}\""));
    let (mut listing, mut whole, mut held) = (UpstreamListing::default(), Members::new(), 0);
    // Members of `whole` that PHP could not read. Later versions in the minified form inherit these
    // members.
    let mut unreadable = BTreeSet::new();
    for raw in versions {
        let Some(written) = object(raw.get()) else {
            if minified && raw.get().starts_with('{') {
                return Err(
                    "one of its versions cannot be read, and later minified versions depend on it".to_owned()
                );
            }
            listing.left_out += 1;
            continue;
        };
        if !minified {
            unreadable.clear();
        }
        for (member, raw) in &written {
            if is_readable(raw) {
                unreadable.remove(member);
            } else {
                unreadable.insert(member.clone());
            }
        }
        let written = written.into_iter().map(|(member, raw)| (member, raw.get().into())).collect();
        if minified {
            members::apply(&mut whole, written);
        } else {
            whole = written;
        }
        held += whole.len();
        if held > MAX_MEMBERS {
            return Err(format!("its versions have more than {MAX_MEMBERS} members together"));
        }
        let readable = if unreadable.is_empty() { read_version(whole.clone(), base, name) } else { None };
        match readable {
            Some(one) => listing.versions.push(one),
            None => listing.left_out += 1,
        }
    }
    Ok(Some(listing))
}

/// Returns true if PHP could read a value. The JSON parser limits the depth and rejects text that
/// is not Unicode.
fn is_readable(raw: &RawValue) -> bool {
    serde_json::from_str::<Value>(raw.get()).is_ok()
}

/// Returns the versions in the numeric order of their keys. PHP writes a list with gaps as a map
/// with numbers as keys. The order matters, because a minified version depends on the version
/// before it.
fn in_written_order(versions: BTreeMap<String, &RawValue>) -> Vec<&RawValue> {
    let mut numbered: Vec<(Option<u64>, &RawValue)> =
        versions.into_iter().map(|(key, raw)| (key.parse().ok(), raw)).collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, raw)| raw).collect()
}

fn read_version(mut members: Members, base: &str, name: &str) -> Option<UpstreamVersion> {
    let text = members::text(&members, "version")?;
    let version = Version::parse(&text)?;
    if !members::text(&members, "name")?.eq_ignore_ascii_case(name) {
        return None;
    }
    let time = members::text(&members, "time");
    let published = time.and_then(|time| Timestamp::parse_rfc3339(&time)?.to_ms());
    members.remove("notification-url");
    let dist = take_dist(&mut members, base);
    Some(UpstreamVersion { version, text, dist, published, members })
}

/// Returns the file that the proxy serves, and removes the file's address from `dist`. `None` if
/// the proxy cannot serve the file, for example a path on the client's disk; `dist` then stays
/// unchanged.
fn take_dist(members: &mut Members, base: &str) -> Option<Dist> {
    let Some(stated) = members::object(members, "dist") else {
        members.remove("dist");
        return None;
    };
    let dist = read_dist(&stated, base)?;
    let passed = PASSED_DIST_MEMBERS
        .iter()
        .filter_map(|member| Some(((*member).to_owned(), stated.get(*member)?.clone())));
    let passed: Map<String, Value> = passed.collect();
    members.insert("dist".to_owned(), Value::Object(passed).to_string().into());
    Some(dist)
}

fn read_dist(stated: &Map<String, Value>, base: &str) -> Option<Dist> {
    let text = |member: &str| stated.get(member).and_then(Value::as_str);
    let kind = text("type").filter(|kind| is_kind(kind))?;
    let url = address::join(base, text("url")?)?;
    let sha1 = text("shasum").filter(|sum| is_sha1(sum)).map(str::to_ascii_lowercase);
    Some(Dist { url, kind: kind.to_owned(), sha1 })
}

/// True if a file of this type can be fetched, and the type can be used as a file extension.
fn is_kind(kind: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !kind.is_empty() && kind != "path" && kind.len() <= 16 && kind.bytes().all(plain)
}

fn is_sha1(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: &str = "https://repo.test/x/packages.json";

    fn template(text: &str) -> Option<Option<String>> {
        read_root(text, BASE).map(|root| root.template)
    }

    #[test]
    fn the_root_has_the_addresses_of_metadata_and_advisories() {
        let root = read_root(
            r#"{"metadata-url": "/p2/%package%.json", "security-advisories": {"api-url": "//a.test/b"}}"#,
            BASE,
        );
        let expected = Root {
            template: Some("https://repo.test/p2/%package%.json".to_owned()),
            advisories: Some("https://a.test/b".to_owned()),
        };
        assert_eq!(root, Some(expected));
        assert_eq!(template(r#"{"packages": {"a/b": {}}}"#), Some(None));
        assert_eq!(template(r#"{"packages": []}"#), Some(None));
        for none in
            ["<html>", "[]", "", "{}", r#"{"packages": [1]}"#, r#"{"metadata-url": "javascript:%package%"}"#]
        {
            assert_eq!(template(none), None, "{none}");
        }
    }

    #[test]
    fn a_list_with_gaps_is_read_in_the_order_of_its_numbers() {
        let text = r#"{"minified": "composer/2.0", "packages": {"a/b": {
            "0": {"name": "a/b", "version": "3.0", "license": ["first"]},
            "2": {"version": "2.0", "license": ["second"]},
            "10": {"version": "1.0"}
        }}}"#;
        let listing = read_listing(text, "https://upstream.test/p2/a/b.json", "a/b").unwrap().unwrap();
        let read: Vec<_> =
            listing.versions.iter().map(|one| (&*one.text, &*one.members["license"])).collect();
        assert_eq!(read, [("3.0", r#"["first"]"#), ("2.0", r#"["second"]"#), ("1.0", r#"["second"]"#)]);
    }

    #[test]
    fn the_versions_of_a_package_are_read() {
        let document = format!(
            r#"{{"minified": "composer/2.0", "packages": {{"a/b": [
              {{"name": "a/b", "version": "2.0", "require": {{"c/d": "^1"}}, "extra": {{"x": 1.50}},
                "dist": {{"type": "zip", "url": "f/2.zip", "shasum": "", "reference": "r", "mirrors": []}},
                "time": "2026-01-02T03:04:05+00:00"}},
              {{"version": "1.0", "require": "__unset",
                "dist": {{"type": "zip", "url": "https://files.test/1.zip", "shasum": "{}"}}}},
              {{"version": "1.x-dev"}}, {{"version": "dev-feature/a"}}, 7, {{"version": "latest"}},
              {{"version": "0.9", "dist": "__unset", "type": "metapackage"}}]}}}}"#,
            "AB".repeat(20)
        );
        let listing = read_listing(&document, BASE, "a/b").unwrap().unwrap();
        let texts: Vec<&str> = listing.versions.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["2.0", "1.0", "1.x-dev", "dev-feature/a", "0.9"]);
        assert_eq!(listing.left_out, 2);
        let [two, one, .., last] = listing.versions.as_slice() else { panic!("five versions") };
        let dist = two.dist.as_ref().unwrap();
        assert_eq!(
            (two.published, dist.url.as_str()),
            (Some(1_767_323_045_000), "https://repo.test/x/f/2.zip")
        );
        assert_eq!(one.dist.as_ref().unwrap().sha1, Some("ab".repeat(20)));
        assert!(!one.members.contains_key("require"));
        assert!(last.dist.is_none() && !last.members.contains_key("dist"));
        assert_eq!(&*two.members["dist"], r#"{"reference":"r","shasum":"","type":"zip"}"#);
        assert_eq!(&*two.members["extra"], r#"{"x": 1.50}"#);
        assert!(read_listing(&document, BASE, "c/d").unwrap().is_none());
        for bad in ["[]", "", "{}", r#"{"packages": {"a/b": 7}}"#] {
            read_listing(bad, BASE, "a/b").unwrap_err();
        }
        assert!(read_listing(r#"{"packages": []}"#, BASE, "a/b").unwrap().is_none());
        assert!(read_listing(r#"{"packages": {"a/b": []}}"#, BASE, "a/b").unwrap().is_some());
    }

    #[test]
    fn every_type_of_file_is_listed() {
        for (dist, served) in [
            (r#"{"type":"tar","url":"f.tar"}"#, true),
            (r#"{"type":"gzip","url":"f.gz"}"#, true),
            (r#"{"type":"phar","url":"https://a.test/f.phar","shasum":"x"}"#, true),
            (r#"{"type":"path","url":"../f"}"#, false),
            (r#"{"type":"zip","url":"ftp://a.test/f.zip"}"#, false),
        ] {
            let document =
                format!(r#"{{"packages": {{"a/b": [{{"name": "a/b", "version": "1", "dist": {dist}}}]}}}}"#);
            let listing = read_listing(&document, BASE, "a/b").unwrap().unwrap();
            let one = &listing.versions[0];
            assert_eq!(one.dist.is_some(), served, "{dist}");
            assert_eq!(&*one.members["dist"] == dist, !served, "{dist}");
        }
    }

    #[test]
    fn versions_share_values_and_their_members_are_limited() {
        let document = |versions: usize| {
            let long = "x".repeat(100_000);
            let all: Vec<String> = (0..versions).map(|at| format!(r#"{{"version": "1.{at}"}}"#)).collect();
            format!(
                r#"{{"minified": "{FORM}", "packages": {{"a/b": [{{"name": "a/b", "description": "{long}", "version": "0"}}, {}]}}}}"#,
                all.join(",")
            )
        };
        assert_eq!(read_listing(&document(300), BASE, "a/b").unwrap().unwrap().versions.len(), 301);
        let problem = read_listing(&document(MAX_MEMBERS / 3 + 1), BASE, "a/b").unwrap_err();
        assert!(problem.contains("more than 300000 members"), "{problem}");
    }

    #[test]
    fn versions_that_php_could_not_read_are_left_out() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for bad in [deep.as_str(), r#""\ud800""#, r#"{"\udc00": 1}"#, "1e999"] {
            for (form, expected) in [("", &["4", "2", "1"][..]), (FORM, &["4", "1"][..])] {
                let document = format!(
                    r#"{{"minified": "{form}", "packages": {{"a/b": [
                      {{"name": "a/b", "version": "4"}}, {{"name": "a/b", "version": "3", "extra": {bad}}},
                      {{"name": "a/b", "version": "2"}}, {{"name": "a/b", "version": "1", "extra": "__unset"}}]}}}}"#
                );
                let listing = read_listing(&document, BASE, "a/b").unwrap().unwrap();
                let read: Vec<&str> = listing.versions.iter().map(|one| one.text.as_str()).collect();
                assert_eq!((read.as_slice(), listing.left_out), (expected, 4 - expected.len()), "{form}");
            }
        }
    }

    #[test]
    fn an_unreadable_version_makes_the_minified_versions_after_it_unreadable() {
        let document = |form: &str| {
            format!(
                r#"{{"minified": "{form}", "packages": {{"a/b": [
                  {{"name": "a/b", "\ud800": 1}}, {{"name": "a/b", "version": "1"}}]}}}}"#
            )
        };
        read_listing(&document(FORM), BASE, "a/b").unwrap_err();
        let listing = read_listing(&document(""), BASE, "a/b").unwrap().unwrap();
        assert_eq!((listing.versions.len(), listing.left_out), (1, 1));
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "(\"version\":\"1.0\"|\"name\":\"a/b\"|\"dist\":|[{}\\[\\]\":,az/09 \\\\u]){0,60}") {
            let _ = read_listing(&format!(r#"{{"packages": {{"a/b": [{text}]}}}}"#), BASE, "a/b");
            let _ = read_root(&text, BASE);
        }
    }
}
