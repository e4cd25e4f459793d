//! A plugin's facts for retention: the JSON that `judge-versions` and `list-unshown` return.
//! Unknown members are ignored; each known member has a bound.

use serde::Deserialize;

/// Most bytes of an answer.
const MAX_BYTES: usize = 4 << 20;
/// Most versions that one version needs.
const MAX_NEEDS: usize = 1_000;
/// Most items of a page.
const MAX_ITEMS: usize = 2_000;

/// A plugin's facts about a version.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct VersionFacts {
    /// True if a movable tag names it. None if the format has no tags.
    pub tagged: Option<bool>,
    /// True if it is a pre-release. None if that is unknown.
    pub prerelease: Option<bool>,
    /// Identifier of the thing that the version is a part of. All versions of a package with the
    /// same identifier belong together. If empty, it is separate.
    pub unit: String,
    /// True if the version is deleted together with another existing item, and never by itself.
    pub follows: bool,
    /// Versions of the same repository that this version cannot work without.
    pub needs: Vec<NeededVersion>,
}

/// A version that another one needs.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NeededVersion {
    pub name: String,
    pub version: String,
}

/// A page of stored data that no listing shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct UnshownPage {
    pub items: Vec<Unshown>,
    /// Start of the next page. None on the last.
    pub next: Option<String>,
}

/// Stored data that no listing shows.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Unshown {
    pub name: String,
    /// Identifier that a deletion of the item names.
    pub version: String,
    /// Time of arrival in ms since 1970, if known.
    #[serde(default)]
    pub published: Option<i64>,
    /// Known bytes of the item and of data that belongs only to it.
    #[serde(default)]
    pub bytes: u64,
    #[serde(default)]
    pub needs: Vec<NeededVersion>,
}

impl VersionFacts {
    /// Parses the result for this number of versions. The error says what is wrong with it.
    pub(crate) fn parse(text: &str, requested: usize) -> Result<Vec<Option<VersionFacts>>, String> {
        let facts: Vec<Option<VersionFacts>> = read(text)?;
        if facts.len() != requested {
            return Err(format!(
                "the plugin judged {} versions, but was asked about {requested}",
                facts.len()
            ));
        }
        match facts.iter().flatten().find(|facts| facts.needs.len() > MAX_NEEDS) {
            Some(facts) => {
                Err(format!("the plugin lists {} versions that one version needs", facts.needs.len()))
            }
            None => Ok(facts),
        }
    }
}

impl UnshownPage {
    /// Parses a page. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<UnshownPage, String> {
        let page: UnshownPage = read(text)?;
        if page.items.len() > MAX_ITEMS {
            return Err(format!("the plugin lists {} items on one page", page.items.len()));
        }
        Ok(page)
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the plugin returned {} bytes; the limit is {MAX_BYTES}", text.len()));
    }
    serde_json::from_str(text).map_err(|error| format!("the plugin's result cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_break_the_contract_are_refused() {
        let facts = VersionFacts::parse(r#"[{"tagged": true, "new": 1}, null]"#, 2).unwrap();
        assert_eq!(facts[0].as_ref().unwrap().tagged, Some(true));
        assert_eq!(facts[1], None);
        assert!(VersionFacts::parse("[]", 1).unwrap_err().contains("was asked about 1"));
        assert!(VersionFacts::parse("{}", 1).unwrap_err().contains("cannot be read"));
        let page = UnshownPage::parse(r#"{"items": [{"name": "a", "version": "b"}], "next": "c"}"#).unwrap();
        assert_eq!((page.items.len(), page.next.as_deref()), (1, Some("c")));
        assert!(UnshownPage::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err().contains("the limit is"));
    }
}
