//! An upstream's `packages.json` and its metadata of a package. The upstream is not trusted: a
//! version that Composer could not read is left out.

use crate::members::{self, FORM, Members};
use crate::version::Version;
use packhouse_sdk::{Timestamp, address};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The number of members that all versions of a package have together at most. Each takes some
/// memory, while versions share the values of members.
const MEMBERS: usize = 300_000;
/// Members of `dist` that do not tell where the file is.
const OF_DIST: [&str; 3] = ["reference", "shasum", "type"];

/// An upstream's `packages.json`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The address of a package's metadata, with `%package%` for its name. Without it all packages
    /// are in `packages.json` itself, as a small Satis writes it.
    pub(crate) template: Option<String>,
    /// The address that answers which advisories there are about packages.
    pub(crate) advisories: Option<String>,
}

/// An upstream's list of a package's versions.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) versions: Vec<Listed>,
    /// Versions that Composer could not read.
    pub(crate) left_out: usize,
}

/// A version as an upstream lists it.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) version: Version,
    /// The version in the upstream's spelling.
    pub(crate) text: String,
    /// The file that the proxy serves; none for a version without one, as a metapackage.
    pub(crate) dist: Option<Dist>,
    /// In ms since 1970, if the upstream states it.
    pub(crate) published: Option<u64>,
    /// All members. `dist` does not say where the file is if the proxy serves the file.
    pub(crate) members: Members,
}

/// A version's file at the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dist {
    pub(crate) url: String,
    /// `zip`, `tar` or another word.
    pub(crate) kind: String,
    /// In lower-case hex, if the upstream states it.
    pub(crate) sha1: Option<String>,
}

/// Reads `packages.json` that came from `base`; none for another document.
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

/// The packages of a document, by name; none if they are not such a map. PHP writes an empty map as
/// an empty list.
fn packages(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    object(raw.get()).or_else(|| {
        let list: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        list.is_empty().then(BTreeMap::new)
    })
}

/// The members of an object, none of them parsed.
fn object(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

/// Reads the versions of a package in a document that came from `base`; none if the document has no
/// such package.
///
/// # Errors
/// What is wrong with the document.
pub(crate) fn read_listing(text: &str, base: &str, name: &str) -> Result<Option<Listing>, String> {
    let document = object(text).ok_or("not a JSON object")?;
    let packages = document.get("packages").and_then(|raw| packages(raw)).ok_or("no packages")?;
    let Some(raw) = packages.get(name) else { return Ok(None) };
    let versions: Vec<&RawValue> = match object(raw.get()) {
        Some(versions) => in_written_order(versions),
        None => serde_json::from_str(raw.get()).map_err(|_| "a package without a list of versions")?,
    };
    let minified = document.get("minified").is_some_and(|raw| raw.get() == format!("\"{FORM}\""));
    let (mut listing, mut whole, mut held) = (Listing::default(), Members::new(), 0);
    // The members of `whole` that PHP could not read. In the minified form versions inherit them.
    let mut unreadable = BTreeSet::new();
    for raw in versions {
        let Some(written) = object(raw.get()) else {
            if minified && raw.get().starts_with('{') {
                return Err("a version that the versions after it cannot be told from".to_owned());
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
        if held > MEMBERS {
            return Err(format!("more than {MEMBERS} members in the versions of one package"));
        }
        let readable = if unreadable.is_empty() { read_version(whole.clone(), base, name) } else { None };
        match readable {
            Some(one) => listing.versions.push(one),
            None => listing.left_out += 1,
        }
    }
    Ok(Some(listing))
}

/// Whether PHP could read a value. Parsing it bounds its depth and refuses texts that are not Unicode.
fn is_readable(raw: &RawValue) -> bool {
    serde_json::from_str::<Value>(raw.get()).is_ok()
}

/// PHP writes a list with gaps as a map: its keys are numbers, and a minified list is read in their order.
fn in_written_order(versions: BTreeMap<String, &RawValue>) -> Vec<&RawValue> {
    let mut numbered: Vec<(Option<u64>, &RawValue)> =
        versions.into_iter().map(|(key, raw)| (key.parse().ok(), raw)).collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, raw)| raw).collect()
}

fn read_version(mut members: Members, base: &str, name: &str) -> Option<Listed> {
    let text = members::text(&members, "version")?;
    let version = Version::parse(&text)?;
    if !members::text(&members, "name")?.eq_ignore_ascii_case(name) {
        return None;
    }
    let time = members::text(&members, "time");
    let published = time.and_then(|time| Timestamp::parse_rfc3339(&time)?.to_ms());
    members.remove("notification-url");
    let dist = take_dist(&mut members, base);
    Some(Listed { version, text, dist, published, members })
}

/// The file that the proxy serves. The member keeps no address of it then. A `dist` of another form
/// stays as it is, as one on the client's own disk.
fn take_dist(members: &mut Members, base: &str) -> Option<Dist> {
    let Some(stated) = members::object(members, "dist") else {
        members.remove("dist");
        return None;
    };
    let dist = read_dist(&stated, base)?;
    let left = OF_DIST.iter().filter_map(|member| Some(((*member).to_owned(), stated.get(*member)?.clone())));
    let left: Map<String, Value> = left.collect();
    members.insert("dist".to_owned(), Value::Object(left).to_string().into());
    Some(dist)
}

fn read_dist(stated: &Map<String, Value>, base: &str) -> Option<Dist> {
    let text = |member: &str| stated.get(member).and_then(Value::as_str);
    let kind = text("type").filter(|kind| is_kind(kind))?;
    let url = address::join(base, text("url")?)?;
    let sha1 = text("shasum").filter(|sum| is_sha1(sum)).map(str::to_ascii_lowercase);
    Some(Dist { url, kind: kind.to_owned(), sha1 })
}

/// Whether a file of this kind can be fetched, and the kind can end a path.
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
    fn the_root_says_where_metadata_and_advisories_are() {
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
    fn each_kind_of_file_is_kept() {
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
    fn versions_share_what_they_have_in_common_and_their_members_are_bounded() {
        let document = |versions: usize| {
            let long = "x".repeat(100_000);
            let all: Vec<String> = (0..versions).map(|at| format!(r#"{{"version": "1.{at}"}}"#)).collect();
            format!(
                r#"{{"minified": "{FORM}", "packages": {{"a/b": [{{"name": "a/b", "description": "{long}", "version": "0"}}, {}]}}}}"#,
                all.join(",")
            )
        };
        assert_eq!(read_listing(&document(300), BASE, "a/b").unwrap().unwrap().versions.len(), 301);
        let fault = read_listing(&document(MEMBERS / 3 + 1), BASE, "a/b").unwrap_err();
        assert!(fault.contains("300000 members"), "{fault}");
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
    fn without_one_versions_members_the_minified_ones_after_it_are_not_known() {
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
        fn any_text_is_read(text in "(\"version\":\"1.0\"|\"name\":\"a/b\"|\"dist\":|[{}\\[\\]\":,az/09 \\\\u]){0,60}") {
            let _ = read_listing(&format!(r#"{{"packages": {{"a/b": [{text}]}}}}"#), BASE, "a/b");
            let _ = read_root(&text, BASE);
        }
    }
}
