//! Where a format keeps its tags: so the host can tell of one that moves, and knows no format by its name.

use packhouse_store::{TagRecord, Tags};
use serde::{Deserialize, Serialize};

/// Records of one kind that hold tags.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TagKeys {
    /// What their keys begin with; the package follows.
    pub prefix: String,
    /// Where each tag has a record of its own: what stands in its key between the package and the tag.
    #[serde(default)]
    pub separator: Option<String>,
    /// The member of the record, a JSON object, in which an object has what each tag names, or which is what the one tag names.
    pub member: String,
}

impl TagKeys {
    /// What the record of this key says of tags; none when it says nothing.
    pub(crate) fn record(&self, key: &str) -> Option<TagRecord> {
        let rest = key.strip_prefix(self.prefix.as_str())?;
        let (package, tags) = match &self.separator {
            None => (rest, Tags::All(self.member.clone())),
            Some(separator) => {
                let (package, tag) = rest.split_once(separator.as_str())?;
                (package, Tags::One { tag: tag.to_owned(), member: self.member.clone() })
            }
        };
        Some(TagRecord { key: key.to_owned(), package: package.to_owned(), tags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_package_and_where_they_are_of_one_the_tag() {
        let all = TagKeys { prefix: "p/".to_owned(), separator: None, member: "tags".to_owned() };
        let record = all.record("p/@a/b").unwrap();
        assert_eq!((record.package.as_str(), record.tags), ("@a/b", Tags::All("tags".to_owned())));
        assert_eq!(all.record("v/@a/b/1"), None);
        let one = TagKeys { separator: Some(":".to_owned()), prefix: "t/".to_owned(), ..all };
        let record = one.record("t/team/app:1.0").unwrap();
        assert_eq!(record.package, "team/app");
        assert_eq!(record.tags, Tags::One { tag: "1.0".to_owned(), member: "tags".to_owned() });
        assert_eq!(one.record("t/team/app"), None);
    }
}
