//! An upstream's `index.yaml`. What it says is a stranger's word: what cannot be understood of it is left out, version by version, and
//! each version is read before the next, since the largest indexes have some ten thousand.

use crate::chart::Chart;
use crate::join::join;
use crate::listing::{Listed, Listing};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;
use std::fmt;

/// Reads an index that came from `base`. None for what is none.
pub(crate) fn read(bytes: &[u8], base: &str) -> Option<Listing> {
    let index = Index { base };
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        let mut text = serde_json::Deserializer::from_slice(bytes);
        return index.deserialize(&mut text).ok();
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 8_000_000, max_nodes: 8_000_000, max_depth: 64, max_documents: 1, max_anchors: 1_000,
            max_total_scalar_bytes: 64 << 20,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
    };
    let text = std::str::from_utf8(bytes).ok()?;
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |text| index.deserialize(text)).ok()
}

/// The index that came from there.
#[derive(Clone, Copy)]
struct Index<'a> {
    base: &'a str,
}

impl<'de> DeserializeSeed<'de> for Index<'_> {
    type Value = Listing;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Listing, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Index<'_> {
    type Value = Listing;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an index of charts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut index: A) -> Result<Listing, A::Error> {
        let (mut listing, mut known) = (None, false);
        while let Some(member) = index.next_key::<String>()? {
            match member.as_str() {
                "apiVersion" => known = index.next_value::<Value>()?.as_str() == Some("v1"),
                "entries" => listing = Some(index.next_value_seed(Entries(self))?),
                _ => drop(index.next_value::<IgnoredAny>()?),
            }
        }
        match known {
            true => Ok(listing.unwrap_or_default()),
            false => Err(de::Error::custom("no apiVersion v1")),
        }
    }
}

struct Entries<'a>(Index<'a>);

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = Listing;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Listing, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Listing;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("charts by their names")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Listing, E> {
        Ok(Listing::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Listing, A::Error> {
        let mut listing = Listing::new();
        while let Some(name) = entries.next_key::<String>()? {
            let versions = entries.next_value_seed(Versions { index: self.0, name: &name })?;
            if !versions.is_empty() {
                listing.insert(name, versions);
            }
        }
        Ok(listing)
    }
}

/// The versions of the chart of this name.
struct Versions<'a> {
    index: Index<'a>,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Versions<'_> {
    type Value = Vec<Listed>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Listed>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Versions<'_> {
    type Value = Vec<Listed>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the versions of a chart")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<Listed>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut versions: A) -> Result<Vec<Listed>, A::Error> {
        let mut found: Vec<Listed> = Vec::new();
        while let Some(version) = versions.next_element::<Value>()? {
            let Some(listed) = listed(version, self.index.base, self.name) else { continue };
            if !found.iter().any(|one| one.chart.version == listed.chart.version) {
                found.push(listed);
            }
        }
        Ok(found)
    }
}

/// What stands in an index beside what a chart says of itself.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Place {
    created: Option<String>,
    digest: Option<String>,
    urls: Option<Vec<String>>,
    removed: Option<bool>,
}

/// A version that can be offered: of this name, with a version that can be sorted and a file that can be fetched.
fn listed(version: Value, base: &str, name: &str) -> Option<Listed> {
    let place = Place::deserialize(&version).ok()?;
    let chart: Chart = serde_json::from_value(version).ok().filter(|chart: &Chart| chart.is_of(name))?;
    if place.removed == Some(true) {
        return None;
    }
    let url = place.urls?.iter().find_map(|url| join(base, url))?;
    let digest = place.digest.map(|text| text.trim_start_matches("sha256:").to_ascii_lowercase());
    let digest = digest.filter(|text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    Some(Listed { chart, created: place.created.unwrap_or_default(), digest, url })
}

#[cfg(test)]
mod tests {
    use super::read;
    use proptest::prelude::*;

    const INDEX: &str = "apiVersion: v1\nentries:\n  demo:\n  - apiVersion: v2\n    name: demo\n    version: 1.0.0\n    created: 2026-01-02T03:04:05.6-06:00\n    \
        digest: abababababababababababababababababababababababababababababababab\n    urls:\n    - https://files.test/demo-1.0.0.tgz\n  \
        - name: demo\n    version: 1.1.0\n    urls: [charts/demo-1.1.0.tgz]\n  - name: other\n    version: 1.2.0\n    urls: [x.tgz]\n  \
        - name: demo\n    version: latest\n    urls: [x.tgz]\n  - name: demo\n    version: 1.3.0\n    urls: [oci://x/y]\n  - 7\n  empty:\n\
        generated: now\n";

    #[test]
    fn what_can_be_offered_is_read() {
        let listing = read(INDEX.as_bytes(), "https://a.test/x/index.yaml").unwrap();
        assert_eq!(listing.keys().collect::<Vec<_>>(), ["demo"]);
        let demo = &listing["demo"];
        let urls: Vec<&str> = demo.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["https://files.test/demo-1.0.0.tgz", "https://a.test/x/charts/demo-1.1.0.tgz"]);
        assert_eq!(
            (demo[0].created.as_str(), demo[1].digest.as_deref()),
            ("2026-01-02T03:04:05.6-06:00", None)
        );
        let json = "{\"apiVersion\": \"v1\", \"entries\": {\"a\": [{\"name\": \"a\", \"version\": \"1.0.0\", \"urls\": [\"a.tgz\"]}]}}";
        assert_eq!(read(json.as_bytes(), "https://a.test/").unwrap().len(), 1);
        assert!(read(b"apiVersion: v1\nentries:\n", "https://a.test/").unwrap().is_empty());
        for none in ["", "<html>", "entries: {}", "apiVersion: v2\nentries: {}", "[]"] {
            assert!(read(none.as_bytes(), "https://a.test/").is_none(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(apiVersion: v1\nentries:\n)?[a-z:\\-\n \\[\\]{}&*!'\"|>#,0-9.]{0,120}") {
            let _ = read(text.as_bytes(), "https://a.test/");
        }
    }
}
