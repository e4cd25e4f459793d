//! A fast reader for the subset of YAML that Helm writes: block style with plain, quoted or literal
//! scalars. It is many times faster than the reader of full YAML, which would take too long for an
//! index of ten thousand versions. For any other text it returns `None`, and the caller uses the
//! full reader.

use serde_json::{Map, Value};

/// The most nested levels in a document.
const MAX_DEPTH: usize = 32;

/// A line of the document. `tail` contains the spaces at its end, which matter only in a literal
/// scalar. In a blank line, `text` is empty, and `tail` contains all spaces.
#[derive(Clone, Copy, Debug)]
struct YamlLine<'a> {
    indent: usize,
    text: &'a str,
    tail: &'a str,
}

/// Reads a mapping; `None` if the text needs the full reader.
pub(crate) fn mapping(text: &str) -> Option<Map<String, Value>> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let content = line.trim_start_matches(' ');
        if content.is_empty() {
            // A blank line may be part of a literal scalar.
            lines.push(YamlLine { indent: usize::MAX, text: "", tail: line });
        } else if content.starts_with('#') || content.contains(['\t', '\r']) {
            return None;
        } else {
            let (text, tail) = content.split_at(content.trim_end_matches(' ').len());
            lines.push(YamlLine { indent: line.len() - content.len(), text, tail });
        }
    }
    let mut reader = BlockReader { lines: &lines, at: 0 };
    reader.skip_blank();
    let indent = reader.peek()?.indent;
    let found = reader.mapping(indent, 0)?;
    reader.skip_blank();
    reader.peek().is_none().then_some(found)
}

/// Reads a scalar on a single line; `None` if the text needs the full reader.
pub(crate) fn scalar(text: &str) -> Option<Value> {
    if text.starts_with('"') {
        return serde_json::from_str::<String>(text).ok().map(Value::String);
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let inner = rest.strip_suffix('\'')?;
        let plain = inner.replace("''", "");
        return (!plain.contains('\'')).then(|| inner.replace("''", "'").into());
    }
    match text {
        "[]" => return Some(Value::Array(Vec::new())),
        "{}" => return Some(Value::Object(Map::new())),
        "null" | "~" | "Null" | "NULL" | "" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(true.into()),
        "false" | "False" | "FALSE" => return Some(false.into()),
        _ => {}
    }
    let special =
        text.starts_with(['&', '*', '!', '|', '>', '%', '@', '`', '[', ']', '{', '}', ',', '?', '#', '-']);
    let dash = text.starts_with('-') && !text.starts_with("- ") && text.len() > 1;
    let is_plain = (!special || dash) && !text.contains(": ") && !text.contains(" #") && !text.ends_with(':');
    // A number becomes text, because no field of a chart is a number.
    is_plain.then(|| text.into())
}

/// Splits a line of a mapping into its key and the text after the colon.
pub(crate) fn pair(text: &str) -> Option<(String, &str)> {
    let (name, rest) = match text.as_bytes().first()? {
        b'"' | b'\'' => {
            let quote = text.chars().next()?;
            let end = text.get(1..)?.find(quote)? + 2;
            let (name, rest) = text.split_at_checked(end)?;
            (scalar(name)?.as_str()?.to_owned(), rest.strip_prefix(':')?)
        }
        _ => {
            let at = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
            let name = text.get(..at)?;
            let is_simple = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
            let is_key = is_simple && !name.is_empty() && !name.starts_with('-');
            (is_key.then(|| name.to_owned())?, text.get(at + 1..)?)
        }
    };
    (rest.is_empty() || rest.starts_with(' ')).then(|| (name, rest.trim_start_matches(' ')))
}

struct BlockReader<'a> {
    lines: &'a [YamlLine<'a>],
    at: usize,
}

impl<'a> BlockReader<'a> {
    fn peek(&self) -> Option<YamlLine<'a>> {
        self.lines.get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.text.is_empty()) {
            self.at += 1;
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Option<Map<String, Value>> {
        let mut found = Map::new();
        loop {
            self.skip_blank();
            let Some(line) = self.peek().filter(|line| line.indent == indent) else { break };
            if line.text.starts_with("- ") || line.text == "-" {
                break;
            }
            let (name, rest) = pair(line.text)?;
            self.at += 1;
            let value = self.value(rest, indent, depth)?;
            if found.insert(name, value).is_some() {
                return None;
            }
        }
        // A deeper line here would belong to no key.
        self.peek().is_none_or(|line| line.indent < indent || line.text.starts_with('-')).then_some(found)
    }

    /// Reads the value after a colon or a dash. `indent` is the indentation of the key or of the
    /// dash.
    fn value(&mut self, rest: &str, indent: usize, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        if rest.is_empty() {
            return self.nested(indent, depth);
        }
        if rest.starts_with('|') {
            return self.literal(rest, indent);
        }
        let Some(next) = self.peek().filter(|next| next.indent > indent) else { return scalar(rest) };
        if next.text.is_empty() && self.deeper_text_follows(indent) {
            return None;
        }
        if next.text.is_empty() {
            return scalar(rest);
        }
        self.folded(rest, indent)
    }

    /// Returns true if the next line that is not blank has a deeper indentation than `indent`.
    fn deeper_text_follows(&self, indent: usize) -> bool {
        let rest = self.lines.get(self.at..).unwrap_or_default();
        rest.iter().find(|line| !line.text.is_empty()).is_some_and(|line| line.indent > indent)
    }

    fn nested(&mut self, indent: usize, depth: usize) -> Option<Value> {
        self.skip_blank();
        let Some(next) = self.peek() else { return Some(Value::Null) };
        let is_item = next.text.starts_with("- ");
        if next.indent < indent || (next.indent == indent && !is_item) {
            return Some(Value::Null);
        }
        if is_item {
            return self.sequence(next.indent, depth + 1).map(Value::Array);
        }
        self.mapping(next.indent, depth + 1).map(Value::Object)
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Option<Vec<Value>> {
        let mut found = Vec::new();
        loop {
            self.skip_blank();
            let Some(line) = self.peek().filter(|line| line.indent == indent) else { break };
            let Some(content) = line.text.strip_prefix("- ") else { break };
            let inner = content.trim_start_matches(' ');
            if inner.starts_with("- ") {
                return None;
            }
            if pair(inner).is_some() {
                found.push(self.item(inner, indent + line.text.len() - inner.len(), depth)?);
            } else {
                self.at += 1;
                found.push(self.value(inner, indent, depth)?);
            }
        }
        Some(found)
    }

    /// Reads a mapping whose first pair is on the line of a dash.
    fn item(&mut self, first: &str, indent: usize, depth: usize) -> Option<Value> {
        let (name, rest) = pair(first)?;
        self.at += 1;
        let value = self.value(rest, indent, depth + 1)?;
        let mut found = Map::from_iter([(name.clone(), value)]);
        self.skip_blank();
        if self.peek().is_some_and(|next| next.indent == indent) {
            let more = self.mapping(indent, depth + 1)?;
            if more.contains_key(&name) {
                return None;
            }
            found.extend(more);
        }
        Some(found.into())
    }

    /// Reads a literal scalar (`|` or `|-`). Its lines remain separate lines.
    fn literal(&mut self, head: &str, indent: usize) -> Option<Value> {
        let keeps_end = match head {
            "|" => true,
            "|-" => false,
            _ => return None,
        };
        let (mut text, mut own, mut blank) = (String::new(), None, 0);
        while let Some(line) = self.peek().filter(|line| line.text.is_empty() || line.indent > indent) {
            self.at += 1;
            if line.text.is_empty() {
                if own.is_none_or(|own| line.tail.len() > own) {
                    return None;
                }
                blank += 1;
                continue;
            }
            let own = *own.get_or_insert(line.indent);
            let deeper = line.indent.checked_sub(own)?;
            if !text.is_empty() {
                (0..=blank).for_each(|_| text.push('\n'));
            }
            blank = 0;
            (0..deeper).for_each(|_| text.push(' '));
            text.push_str(line.text);
            text.push_str(line.tail);
        }
        if keeps_end && !text.is_empty() {
            text.push('\n');
        }
        Some(text.into())
    }

    /// Reads a plain scalar that continues on deeper lines, and joins the lines with spaces.
    fn folded(&mut self, first: &str, indent: usize) -> Option<Value> {
        scalar(first)?.as_str().filter(|_| !first.starts_with(['"', '\'']))?;
        let mut text = first.to_owned();
        while let Some(line) = self.peek().filter(|line| line.indent > indent) {
            if line.text.is_empty() {
                if self.deeper_text_follows(indent) {
                    return None;
                }
                break;
            }
            self.at += 1;
            text.push(' ');
            text.push_str(line.text);
        }
        let is_plain = !text.contains(": ") && !text.contains(" #") && !text.ends_with(':');
        is_plain.then(|| text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::mapping;
    use crate::yaml;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const ITEM: &str = "    annotations:\n      category: Infrastructure\n      images: |\n        - name: app\n          image: docker.io/app:1\n\n        - name: b\n      \
        artifacthub.io/changes: |-\n        one\n    apiVersion: v2\n    appVersion: 1.16.0\n    created: \"2026-01-02T03:04:05Z\"\n    dependencies:\n    - name: common\n      \
        tags:\n      - a\n      - b\n      version: 2.x.x\n    - condition: x.enabled\n      name: 'it''s'\n    deprecated: true\n    description: A chart that is long enough to be\n      \
        folded by who writes it\n    digest: abab\n    home: https://example.org/?a=b\n    keywords: []\n    maintainers:\n      - name: Ann\n        email: ann@example.org\n    \
        name: demo\n    urls:\n    - https://files.test/demo-1.0.0.tgz\n    version: 1.0.0\n";

    #[test]
    fn yaml_of_helm_is_read_like_by_the_full_reader() {
        let read = Value::Object(mapping(ITEM).unwrap());
        let other: Value = serde_saphyr::from_str(ITEM).unwrap();
        assert_eq!(read, other);
        assert_eq!(read["annotations"]["images"], "- name: app\n  image: docker.io/app:1\n\n- name: b\n");
    }

    #[test]
    fn other_yaml_is_left_to_the_full_reader() {
        for text in [
            "a: &x b",
            "a: *x",
            "a: !t b",
            "a: [b, c]",
            "a: {b: c}",
            "a: >\n  b",
            "a: \"b\n  c\"",
            "a: 'b\n  c'",
            "a: b # c",
            "a: b: c",
            "a: b\na: c",
            "? a\n: b",
            "a: b\n\n  c",
            "a:\n  b\n  c",
            "- a",
            "a: |2\n  b",
            "a: b\n c: d",
            "\"a\" : b",
            "a: |\n\n  b",
            "a: |\n    b\n  c",
            "<<: b",
            "a: \"\\x41\"",
        ] {
            assert_eq!(mapping(text), None, "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            any::<String>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z./-]{1,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Compares this reader with the full reader, for each text that this reader accepts. The
        /// texts contain no numbers, because only this reader returns a number as text.
        #[test]
        fn it_agrees_with_the_full_reader(text in "([ ]{0,4}((- )?[a-c]{1,2}:?( [a-c'\"|>-]{0,4}| \\|)?[ \u{a0}]{0,2})?\n){1,6}") {
            if let Some(read) = mapping(&text) {
                let other: Result<Value, _> = serde_saphyr::from_str(&text);
                if let Ok(other) = other {
                    prop_assert_eq!(Value::Object(read), other, "{}", text);
                }
            }
        }

        #[test]
        fn yaml_of_this_plugin_is_read(value in prop::collection::btree_map("[a-z]{1,6}", values(), 1..4)) {
            let value: serde_json::Map<String, Value> = value.into_iter().collect();
            let mut text = String::new();
            yaml::fields(&mut text, &value, 0);
            if let Some(read) = mapping(&text) {
                prop_assert_eq!(json!(read), json!(value), "{}", text);
            }
        }

        #[test]
        fn any_text_is_handled(text in "[a-z:\\-\n \\[\\]{}&*!'\"|>#,]{0,80}") {
            let _ = mapping(&text);
        }
    }
}
