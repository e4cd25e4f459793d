//! What a plugin tells retention: the JSON that `judge-versions` and `list-unshown` return. Members that this host does not know are
//! ignored; each that it knows has a bound.

use serde::Deserialize;

/// Bytes of an answer.
const MAX_BYTES: usize = 4 << 20;
/// Versions that one needs.
const MAX_NEEDS: usize = 1_000;
/// Items of a page.
const MAX_ITEMS: usize = 2_000;

/// What a plugin says of a version.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct VersionFacts {
    /// Whether something that people move names it; none where the format has no such thing.
    pub tagged: Option<bool>,
    /// Whether it is a pre-release; none where that cannot be told.
    pub prerelease: Option<bool>,
    /// What it is one and the same thing as, with all others of its package that say the same; empty: it is a thing of its own.
    pub unit: String,
    /// It goes with another thing that is there, and never by itself.
    pub follows: bool,
    /// Versions of the same repository that cannot be used without it being broken should they go.
    pub needs: Vec<NeededVersion>,
}

/// A version that another one needs.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NeededVersion {
    /// Its package.
    pub name: String,
    /// The version.
    pub version: String,
}

/// A page of what is held and nobody is shown.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct UnshownPage {
    /// What is on it.
    pub items: Vec<Unshown>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
}

/// Something that is held and nobody is shown.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Unshown {
    /// Its package.
    pub name: String,
    /// What it is deleted by.
    pub version: String,
    /// When it came, in ms since 1970, where that is known.
    #[serde(default)]
    pub published: Option<i64>,
    /// Of itself and of what goes with it alone, as far as that is known.
    #[serde(default)]
    pub bytes: u64,
    /// As [`VersionFacts::needs`].
    #[serde(default)]
    pub needs: Vec<NeededVersion>,
}

impl VersionFacts {
    /// Reads what was returned for so many versions; says what is wrong with it.
    pub(crate) fn parse(text: &str, asked: usize) -> Result<Vec<Option<VersionFacts>>, String> {
        let facts: Vec<Option<VersionFacts>> = read(text)?;
        if facts.len() != asked {
            return Err(format!("the plugin judged {} versions, and was asked about {asked}", facts.len()));
        }
        match facts.iter().flatten().find(|facts| facts.needs.len() > MAX_NEEDS) {
            Some(facts) => Err(format!("the plugin names {} versions that one needs", facts.needs.len())),
            None => Ok(facts),
        }
    }
}

impl UnshownPage {
    /// Reads what was returned; says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<UnshownPage, String> {
        let page: UnshownPage = read(text)?;
        if page.items.len() > MAX_ITEMS {
            return Err(format!("the plugin lists {} things on one page", page.items.len()));
        }
        Ok(page)
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the plugin answered {} bytes: {MAX_BYTES} are allowed", text.len()));
    }
    serde_json::from_str(text).map_err(|error| format!("the plugin's answer cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_the_contract_says_is_named() {
        let facts = VersionFacts::parse(r#"[{"tagged": true, "new": 1}, null]"#, 2).unwrap();
        assert_eq!(facts[0].as_ref().unwrap().tagged, Some(true));
        assert_eq!(facts[1], None);
        assert!(VersionFacts::parse("[]", 1).unwrap_err().contains("was asked about 1"));
        assert!(VersionFacts::parse("{}", 1).unwrap_err().contains("cannot be read"));
        let page = UnshownPage::parse(r#"{"items": [{"name": "a", "version": "b"}], "next": "c"}"#).unwrap();
        assert_eq!((page.items.len(), page.next.as_deref()), (1, Some("c")));
        assert!(UnshownPage::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err().contains("are allowed"));
    }
}
