//! Counts JSON tokens while a body arrives, so that a body with too many is refused before anything
//! is built from it.
//!
//! A token is what a streaming parser reports: the start or end of an object or list, a name, or a
//! value. The counter does not check the grammar; the parser does that once the size is known.

/// Token counter for a body in chunks.
#[derive(Debug, Default)]
pub(crate) struct TokenCounter {
    count: u64,
    at: Position,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Position {
    #[default]
    Between,
    Scalar,
    Text,
    Escape,
}

impl TokenCounter {
    /// Adds the next bytes. Returns the number of tokens so far.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> u64 {
        for byte in bytes {
            self.step(*byte);
        }
        self.count
    }

    fn step(&mut self, byte: u8) {
        self.at = match (self.at, byte) {
            (Position::Escape, _) => Position::Text,
            (Position::Text, b'\\') => Position::Escape,
            (Position::Text, b'"') => Position::Between,
            (Position::Text, _) => Position::Text,
            (_, b'"') => self.token(Position::Text),
            (_, b'{' | b'}' | b'[' | b']') => self.token(Position::Between),
            (_, b',' | b':' | b' ' | b'\t' | b'\r' | b'\n') => Position::Between,
            (Position::Between, _) => self.token(Position::Scalar),
            (Position::Scalar, _) => Position::Scalar,
        };
    }

    fn token(&mut self, next: Position) -> Position {
        self.count += 1;
        next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn count(text: &str) -> u64 {
        TokenCounter::default().feed(text.as_bytes())
    }

    #[test]
    fn tokens_are_starts_ends_names_and_values() {
        for (text, expected) in [
            ("", 0),
            ("null", 1),
            ("[]", 2),
            ("[1,2, 3 ]", 5),
            (r#"{"a": "b"}"#, 4),
            (r#"{"a": {"b": [true, "x\",\"y"]}}"#, 10),
            (r#""a\\""#, 1),
            ("-1.5e3", 1),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }

    fn expected(value: &Value) -> u64 {
        match value {
            Value::Array(items) => 2 + items.iter().map(expected).sum::<u64>(),
            Value::Object(members) => 2 + members.values().map(|value| 1 + expected(value)).sum::<u64>(),
            _ => 1,
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((".*", inner), 0..8)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_the_parsed_value_however_it_is_split(value in values(), cut in 1_usize..40) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            let mut counter = TokenCounter::default();
            let last = text.as_bytes().chunks(cut).map(|chunk| counter.feed(chunk)).last();
            prop_assert_eq!(last.unwrap_or_default(), expected(&value));
        }
    }
}
