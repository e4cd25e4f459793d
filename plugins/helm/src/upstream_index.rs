//! Reads an upstream's `index.yaml`. The plugin does not trust the upstream, and leaves out
//! versions that it cannot read. It parses the index version by version, because the largest
//! indexes have about ten thousand versions.

use crate::block_yaml;
use crate::chart::Chart;
use crate::listed::{ChartListing, ListedChart};
use packhouse_sdk::address::join;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The largest index for the reader of full YAML, in bytes. The reader needs about a second for an
/// index of this size.
const MAX_FULL_YAML: usize = 2 << 20;

/// The content of an index.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct UpstreamIndex {
    pub(crate) listing: ChartListing,
    /// Number of unreadable versions, by chart.
    pub(crate) left_out: BTreeMap<String, usize>,
}

/// Reads an index whose address is `base`. Returns `None` if the text is not an index, or is too
/// large for the full reader. `only` limits the result to one chart, but has an effect only if the
/// index is in block style.
pub(crate) fn read(bytes: &[u8], base: &str, only: Option<&str>) -> Option<UpstreamIndex> {
    let index = IndexVisitor { base };
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        let mut text = serde_json::Deserializer::from_slice(bytes);
        return index.deserialize(&mut text).ok();
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if let Some(index) = in_blocks(text, base, only) {
        return Some(index);
    }
    if bytes.len() > MAX_FULL_YAML {
        return None;
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 1_000_000, max_depth: 64, max_documents: 1, max_anchors: 1_000 },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |text| index.deserialize(text)).ok()
}

/// Reads an index in the style of Helm: each chart name has its own line, and each version below
/// the name starts with a dash. Returns `None` for any other style.
fn in_blocks(text: &str, base: &str, only: Option<&str>) -> Option<UpstreamIndex> {
    let mut index = UpstreamIndex::default();
    let (mut known, mut inside) = (false, false);
    let mut chart: Option<(usize, String)> = None;
    let mut item: Option<(usize, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, content) = (at, line.trim_start_matches(' ').trim_end());
        at += line.len();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if content.is_empty() || (indent == 0 && (content.starts_with('#') || content == "---")) {
            continue;
        }
        if item.is_some_and(|(_, own)| indent > own) {
            continue;
        }
        if let (Some((from, _)), Some((_, name))) = (item.take(), &chart) {
            add_version(&mut index, text.get(from..start)?, base, name, only);
        }
        if indent == 0 {
            let (name, rest) = block_yaml::pair(content)?;
            inside = name == "entries" && rest.is_empty();
            known |= name == "apiVersion" && block_yaml::scalar(rest)? == "v1";
            chart = None;
        } else if !inside {
            // The line belongs to a member of the index that the plugin does not need.
        } else if content.starts_with("- ") && chart.as_ref().is_some_and(|(own, _)| indent >= *own) {
            item = Some((start, indent));
        } else {
            let (name, rest) = block_yaml::pair(content)?;
            let own = chart.as_ref().map_or(indent, |(own, _)| *own);
            if own != indent || !matches!(rest, "" | "[]" | "null") {
                return None;
            }
            chart = Some((indent, name));
        }
    }
    if let (Some((from, _)), Some((_, name))) = (item, &chart) {
        add_version(&mut index, text.get(from..)?, base, name, only);
    }
    known.then_some(index)
}

/// Adds the version in the lines `text`. Counts an unreadable version as left out. Skips a removed
/// version, and any chart other than `only`.
fn add_version(index: &mut UpstreamIndex, text: &str, base: &str, name: &str, only: Option<&str>) {
    if only.is_some_and(|only| only != name) {
        return;
    }
    // A space replaces the dash, so that the first line has the same indentation as the other
    // lines.
    let text = text.replacen('-', " ", 1);
    let version = match block_yaml::mapping(&text) {
        Some(version) => Some(Value::Object(version)),
        None => {
            let options = serde_saphyr::options! {
                budget: serde_saphyr::budget! { max_events: 20_000, max_depth: 64, max_documents: 1, max_anchors: 100 },
            };
            serde_saphyr::from_str_with_options(&text, options).ok()
        }
    };
    match version.ok_or(Unreadable).and_then(|version| listed(version, base, name)) {
        Ok(Some(listed)) => index.listing.entry(name.to_owned()).or_default().push(listed),
        Ok(None) => {}
        Err(Unreadable) => *index.left_out.entry(name.to_owned()).or_default() += 1,
    }
}

/// Reads an index whose address is `base`.
#[derive(Clone, Copy)]
struct IndexVisitor<'a> {
    base: &'a str,
}

impl<'de> DeserializeSeed<'de> for IndexVisitor<'_> {
    type Value = UpstreamIndex;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<UpstreamIndex, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for IndexVisitor<'_> {
    type Value = UpstreamIndex;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an index of charts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut index: A) -> Result<UpstreamIndex, A::Error> {
        let (mut read, mut known) = (None, false);
        while let Some(member) = index.next_key::<String>()? {
            match member.as_str() {
                "apiVersion" => known = index.next_value::<Value>()?.as_str() == Some("v1"),
                "entries" => read = Some(index.next_value_seed(EntriesVisitor(self))?),
                _ => drop(index.next_value::<IgnoredAny>()?),
            }
        }
        match known {
            true => Ok(read.unwrap_or_default()),
            false => Err(de::Error::custom("no apiVersion v1")),
        }
    }
}

/// Reads the `entries` of an index.
struct EntriesVisitor<'a>(IndexVisitor<'a>);

impl<'de> DeserializeSeed<'de> for EntriesVisitor<'_> {
    type Value = UpstreamIndex;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<UpstreamIndex, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EntriesVisitor<'_> {
    type Value = UpstreamIndex;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("charts by their names")
    }

    fn visit_unit<E: de::Error>(self) -> Result<UpstreamIndex, E> {
        Ok(UpstreamIndex::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UpstreamIndex, A::Error> {
        let mut read = UpstreamIndex::default();
        while let Some(name) = entries.next_key::<String>()? {
            let (versions, left_out) =
                entries.next_value_seed(VersionsVisitor { index: self.0, name: &name })?;
            if left_out > 0 {
                read.left_out.insert(name.clone(), left_out);
            }
            if !versions.is_empty() {
                read.listing.insert(name, versions);
            }
        }
        Ok(read)
    }
}

/// Reads the versions of a chart, and counts the unreadable ones.
struct VersionsVisitor<'a> {
    index: IndexVisitor<'a>,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for VersionsVisitor<'_> {
    type Value = (Vec<ListedChart>, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for VersionsVisitor<'_> {
    type Value = (Vec<ListedChart>, usize);

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the versions of a chart")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok((Vec::new(), 0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut versions: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut left_out) = (Vec::<ListedChart>::new(), 0);
        while let Some(version) = versions.next_element::<Value>()? {
            match listed(version, self.index.base, self.name) {
                Ok(Some(one)) if found.iter().any(|known| known.chart.version == one.chart.version) => {}
                Ok(one) => found.extend(one),
                Err(Unreadable) => left_out += 1,
            }
        }
        Ok((found, left_out))
    }
}

/// Fields of a version that are in an index but not in a Chart.yaml.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct IndexFields {
    created: Option<String>,
    digest: Option<String>,
    urls: Option<Vec<String>>,
    removed: Option<bool>,
}

/// The error for a version that is unreadable or invalid.
struct Unreadable;

/// Reads a version of the chart `name`. Returns `None` if the index marks the version as removed.
///
/// # Errors
/// [`Unreadable`] if the version has another name, an invalid number or no URL that can be fetched.
fn listed(version: Value, base: &str, name: &str) -> Result<Option<ListedChart>, Unreadable> {
    let fields = IndexFields::deserialize(&version).map_err(|_| Unreadable)?;
    if fields.removed == Some(true) {
        return Ok(None);
    }
    let chart = serde_json::from_value(version).ok().filter(|chart: &Chart| chart.is_valid_for(name));
    let chart = chart.ok_or(Unreadable)?;
    let url = fields.urls.iter().flatten().find_map(|url| join(base, url)).ok_or(Unreadable)?;
    let digest = fields.digest.map(|text| text.trim_start_matches("sha256:").to_ascii_lowercase());
    let digest = digest.filter(|text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    Ok(Some(ListedChart { chart, created: fields.created.unwrap_or_default(), digest, url }))
}

#[cfg(test)]
mod tests {
    use super::{UpstreamIndex, read};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const INDEX: &str = "apiVersion: v1\nentries:\n  demo:\n  - apiVersion: v2\n    name: demo\n    version: 1.0.0\n    created: 2026-01-02T03:04:05.6-06:00\n    \
        digest: abababababababababababababababababababababababababababababababab\n    urls:\n    - https://files.test/demo-1.0.0.tgz\n  \
        - name: demo\n    version: 1.1.0\n    urls: [charts/demo-1.1.0.tgz]\n  - name: other\n    version: 1.2.0\n    urls: [x.tgz]\n  \
        - name: demo\n    version: latest\n    urls: [x.tgz]\n  - name: demo\n    version: 1.3.0\n    urls: [oci://x/y]\n  - 7\n  empty:\n\
        generated: now\n";

    #[test]
    fn versions_that_can_be_offered_are_read() {
        let UpstreamIndex { listing, left_out } =
            read(INDEX.as_bytes(), "https://a.test/x/index.yaml", None).unwrap();
        assert_eq!(left_out, BTreeMap::from([("demo".to_owned(), 4)]));
        assert_eq!(listing.keys().collect::<Vec<_>>(), ["demo"]);
        let demo = &listing["demo"];
        let urls: Vec<&str> = demo.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["https://files.test/demo-1.0.0.tgz", "https://a.test/x/charts/demo-1.1.0.tgz"]);
        assert_eq!(
            (demo[0].created.as_str(), demo[1].digest.as_deref()),
            ("2026-01-02T03:04:05.6-06:00", None)
        );
        let json = "{\"apiVersion\": \"v1\", \"entries\": {\"a\": [{\"name\": \"a\", \"version\": \"1.0.0\", \"urls\": [\"a.tgz\"]}]}}";
        assert_eq!(read(json.as_bytes(), "https://a.test/", None).unwrap().listing.len(), 1);
        let empty = read(b"apiVersion: v1\nentries:\n", "https://a.test/", None);
        assert_eq!(empty, Some(UpstreamIndex::default()));
        for invalid in ["", "<html>", "entries: {}", "apiVersion: v2\nentries: {}", "[]"] {
            assert!(read(invalid.as_bytes(), "https://a.test/", None).is_none(), "{invalid}");
        }
    }

    #[test]
    fn both_readers_return_the_same() {
        let blocks = super::in_blocks(INDEX, "https://a.test/", None).unwrap();
        let flow = INDEX
            .replace("    created: 2026", "    annotations: {}\n    created: 2026")
            .replace("apiVersion: v1\n", "{apiVersion: v1, entries: {}}\n");
        assert!(super::in_blocks(&flow, "https://a.test/", None).is_none());
        let index = super::IndexVisitor { base: "https://a.test/" };
        let options =
            serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough };
        let whole = serde_saphyr::with_deserializer_from_str_with_options(INDEX, options, |text| {
            serde::de::DeserializeSeed::deserialize(index, text)
        });
        assert_eq!(blocks, whole.unwrap());
        let other = super::in_blocks(INDEX, "https://a.test/", Some("other"));
        assert_eq!(other, Some(UpstreamIndex::default()));
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "(apiVersion: v1\nentries:\n)?[a-z:\\-\n \\[\\]{}&*!'\"|>#,0-9.]{0,120}") {
            let _ = (read(text.as_bytes(), "https://a.test/", None), read(text.as_bytes(), "https://a.test/", Some("a")));
        }
    }
}
