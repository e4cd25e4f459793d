//! Tags of packages in records. The format's plugin states which records contain tags and where.

use std::collections::BTreeMap;

use serde_json::Value;

/// A changed record that contains tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagRecord {
    pub key: String,
    /// Package to which the tags belong.
    pub package: String,
    /// Location of the tags in the record.
    pub tags: Tags,
}

/// Location of tags in a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tags {
    /// All tags of the package: the member of this name is an object of tags and the versions that
    /// they name.
    All(String),
    /// One tag: the member holds the version that it names.
    One { tag: String, member: String },
}

impl Tags {
    /// Versions that the tags name in a record's value. Empty without a record, or if its content
    /// has another form.
    pub(crate) fn named(&self, value: Option<&[u8]>) -> BTreeMap<String, String> {
        let Some(Value::Object(fields)) = value.and_then(|value| serde_json::from_slice(value).ok()) else {
            return BTreeMap::new();
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match self {
            Tags::All(member) => {
                let tags = fields.get(member).and_then(Value::as_object);
                let named = |(tag, version): (&String, &Value)| Some((tag.clone(), text(version)?));
                tags.into_iter().flatten().filter_map(named).collect()
            }
            Tags::One { tag, member } => {
                fields.get(member).and_then(text).map(|named| (tag.clone(), named)).into_iter().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_of_records_of_either_form() {
        let all = Tags::All("tags".to_owned());
        let record = br#"{"tags": {"latest": "2", "next": "3", "odd": 4}, "modified": 1}"#;
        let named = all.named(Some(record));
        assert_eq!(named, BTreeMap::from([("latest".into(), "2".into()), ("next".into(), "3".into())]));
        for nothing in [None, Some(&b"[]"[..]), Some(b"{\"tags\": []}"), Some(b"no JSON")] {
            assert!(all.named(nothing).is_empty());
        }
        let one = Tags::One { tag: "1.0".to_owned(), member: "digest".to_owned() };
        assert_eq!(
            one.named(Some(br#"{"digest": "sha256:a"}"#)),
            BTreeMap::from([("1.0".into(), "sha256:a".into())])
        );
        assert!(one.named(None).is_empty());
    }
}
