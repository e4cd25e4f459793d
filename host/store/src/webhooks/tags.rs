//! Tags of packages, as records say them: where a format keeps them is said by its plugin, and nothing here knows which that is.

use std::collections::BTreeMap;

use serde_json::Value;

/// A record that a commit changes and that holds tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagRecord {
    /// The record's key.
    pub key: String,
    /// The package whose tags they are.
    pub package: String,
    /// What it says.
    pub tags: Tags,
}

/// What a record says of tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tags {
    /// All tags of the package: at this member an object, of what each names.
    All(String),
    /// One tag: what it names stands at the member.
    One {
        /// The tag.
        tag: String,
        /// The member.
        member: String,
    },
}

impl Tags {
    /// What each tag names, by a record's value; nothing where there is no record, or it says nothing of the kind.
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
