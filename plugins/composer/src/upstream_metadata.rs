//! An upstream's `packages.json` and the metadata of a package. What they say is a stranger's word: what cannot be understood of it is left
//! out, version by version.

use crate::minify;
use crate::version::Version;
use packhouse_sdk::Timestamp;
use packhouse_sdk::address::join;
use serde_json::{Map, Value};

/// Bytes of all versions of a package, each written out.
const EXPANDED: usize = 24 << 20;

/// What an upstream says of where its metadata are.
#[derive(Debug)]
pub(crate) enum Root {
    /// Addresses of documents, with `%package%` for the name.
    Template(String),
    /// All packages stand in this document itself, as a small Satis writes it.
    Inline,
}

/// A version that an upstream lists.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) version: Version,
    /// As it is spelt.
    pub(crate) text: String,
    /// Where its file is, of which kind it is, and its SHA-1 in hex; none for what has no file, as a metapackage.
    pub(crate) dist: Option<Dist>,
    /// In ms since 1970.
    pub(crate) published: Option<u64>,
    /// All of it as JSON, but for where its file is.
    pub(crate) json: String,
}

/// A file of an upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dist {
    pub(crate) url: String,
    pub(crate) kind: String,
    pub(crate) sha1: Option<String>,
}

/// Reads `packages.json` that came from `base`. None for what is none.
pub(crate) fn root(bytes: &[u8], base: &str) -> Option<Root> {
    let document: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    match document.get("metadata-url").and_then(Value::as_str) {
        Some(template) if template.contains("%package%") => join(base, template).map(Root::Template),
        _ => document.get("packages").filter(|packages| packages.is_object()).map(|_| Root::Inline),
    }
}

/// Reads the versions of this package from a document that came from `base`; none where it has no such package. `Err` for what is no such
/// document.
pub(crate) fn read(bytes: &[u8], base: &str, name: &str) -> Result<Option<Vec<Listed>>, &'static str> {
    let mut document: Map<String, Value> = serde_json::from_slice(bytes).map_err(|_| "no JSON object")?;
    let minified = document.get("minified").and_then(Value::as_str) == Some(minify::FORM);
    let Some(Value::Object(mut packages)) = document.remove("packages") else { return Err("no packages") };
    let versions = match packages.remove(name) {
        None => return Ok(None),
        Some(Value::Array(versions)) => versions,
        Some(Value::Object(versions)) => versions.into_iter().map(|(_, version)| version).collect(),
        Some(_) => return Err("a package that is no list of versions"),
    };
    let (mut found, mut whole, mut size) = (Vec::new(), Map::new(), 0);
    for version in versions {
        let Value::Object(version) = version else { continue };
        if minified {
            minify::apply(&mut whole, version);
        } else {
            whole = version;
        }
        let Some(listed) = listed(whole.clone(), base, name) else { continue };
        size += listed.json.len();
        if size > EXPANDED {
            return Err("more than 24 MiB of one package's versions");
        }
        found.push(listed);
    }
    Ok(Some(found))
}

fn listed(mut version: Map<String, Value>, base: &str, name: &str) -> Option<Listed> {
    if version.get("name").and_then(Value::as_str) != Some(name) {
        return None;
    }
    let text = version.get("version")?.as_str()?.to_owned();
    let parsed = Version::parse(&text)?;
    let published =
        version.get("time").and_then(Value::as_str).and_then(|time| Timestamp::parse_rfc3339(time)?.to_ms());
    version.remove("notification-url");
    let dist = version.get_mut("dist").and_then(Value::as_object_mut).and_then(|dist| {
        let member = |name: &str| dist.get(name).and_then(Value::as_str);
        let kind = member("type").filter(|kind| matches!(*kind, "zip" | "tar"))?.to_owned();
        let url = join(base, member("url")?)?;
        let hex = |text: &&str| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let sha1 = member("shasum").filter(hex).map(str::to_ascii_lowercase);
        dist.retain(|name, _| matches!(name.as_str(), "type" | "reference" | "shasum"));
        Some(Dist { url, kind, sha1 })
    });
    if dist.is_none() {
        version.remove("dist");
    }
    let json = serde_json::to_string(&version).ok()?;
    Some(Listed { version: parsed, text, dist, published, json })
}

#[cfg(test)]
mod tests {
    use super::{Root, read, root};
    use proptest::prelude::*;

    #[test]
    fn what_an_upstream_lists_is_read() {
        let base = "https://repo.test/x/packages.json";
        let template = |text: &str| match root(text.as_bytes(), base) {
            Some(Root::Template(template)) => Some(template),
            _ => None,
        };
        assert_eq!(
            template(r#"{"metadata-url": "/p2/%package%.json"}"#).as_deref(),
            Some("https://repo.test/p2/%package%.json")
        );
        assert!(matches!(root(br#"{"packages": {"a/b": {}}}"#, base), Some(Root::Inline)));
        assert!(root(b"<html>", base).is_none() && root(br#"{"packages": []}"#, base).is_none());
        let document = r#"{"minified": "composer/2.0", "packages": {"a/b": [
            {"name": "a/b", "version": "2.0", "require": {"c/d": "^1"}, "dist": {"type": "zip", "url": "f/2.zip", "shasum": "", "reference": "r", "mirrors": []}, "time": "2026-01-02T03:04:05+00:00"},
            {"version": "1.0", "require": "__unset", "dist": {"type": "zip", "url": "https://files.test/1.zip", "shasum": "ABABABABABABABABABABABABABABABABABABABAB"}},
            {"version": "1.x-dev"}, 7, {"version": "0.9", "dist": "__unset", "type": "metapackage"}]}}"#;
        let all = read(document.as_bytes(), base, "a/b").unwrap().unwrap();
        let texts: Vec<&str> = all.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["2.0", "1.0", "0.9"]);
        assert_eq!(
            (all[0].published, all[0].dist.as_ref().unwrap().url.as_str()),
            (Some(1_767_323_045_000), "https://repo.test/x/f/2.zip")
        );
        assert_eq!(
            all[1].dist.as_ref().unwrap().sha1.as_deref(),
            Some("abababababababababababababababababababab")
        );
        assert!(
            !all[1].json.contains("require") && !all[1].json.contains("files.test") && all[2].dist.is_none()
        );
        assert_eq!(read(document.as_bytes(), base, "c/d"), Ok(None));
        assert!(read(b"[]", base, "a/b").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[{}\\[\\]\":,a-z/0-9 ]{0,60}") {
            let whole = format!(r#"{{"packages": {{"a/b": [{text}]}}}}"#);
            let _ = (read(whole.as_bytes(), "https://a.test/", "a/b"), root(text.as_bytes(), "https://a.test/"));
        }
    }
}
