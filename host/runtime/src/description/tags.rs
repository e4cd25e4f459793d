//! Location of a format's tags. With it, the host detects a moved tag in any format.

use packhouse_store::{TagRecord, Tags};
use serde::{Deserialize, Serialize};

/// Records of one kind that hold tags.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TagKeys {
    /// Prefix of the records' keys, before the package name.
    pub prefix: String,
    /// Separator of package and tag in the key, if each tag has its own record.
    #[serde(default)]
    pub separator: Option<String>,
    /// Member of the record, which is a JSON object. The member maps all tags to their targets. If
    /// each tag has its own record, the member is the tag's target.
    pub member: String,
}

impl TagKeys {
    /// Returns the tags of the record with this key, or none if it holds no tags.
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
    fn keys_name_the_package_and_a_single_tag() {
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
