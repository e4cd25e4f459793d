//! Ranges of keys in byte order.

/// Text that is larger than every key, because a key has at most 1,024 bytes.
const END: &str = "\u{10ffff}";
const END_TIMES: usize = 257;
/// Least character of a key, because keys have no NUL.
const LEAST: char = '\u{1}';

/// Keys from `from` (included) to `end` (excluded).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) from: String,
    pub(crate) end: String,
}

impl Range {
    /// Keys that begin with `prefix` and come after `after`; `None` if no such key can exist.
    pub(crate) fn new(prefix: &str, after: Option<&str>) -> Option<Range> {
        if prefix.contains('\0') {
            return None;
        }
        let end = successor(prefix).unwrap_or_else(|| END.repeat(END_TIMES));
        let from = match after {
            Some(after) if after >= prefix => just_after(after),
            _ => prefix.to_owned(),
        };
        (from < end).then_some(Range { from, end })
    }

    /// True if the range contains this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.from.as_str() <= key && key < self.end.as_str()
    }

    /// The range without the keys before `from`.
    pub(super) fn starting_at(self, from: String) -> Option<Range> {
        let from = self.from.max(from);
        (from < self.end).then_some(Range { from, end: self.end })
    }
}

/// The least key after this one. Ignores everything after a NUL, because no key contains one.
pub(crate) fn just_after(key: &str) -> String {
    let key = key.split('\0').next().unwrap_or_default();
    format!("{key}{LEAST}")
}

/// Least text after all texts that begin with `prefix`; `None` if there is no such text.
pub(super) fn successor(prefix: &str) -> Option<String> {
    let mut rest = prefix;
    while let Some(last) = rest.chars().next_back() {
        rest = rest.strip_suffix(last)?;
        if let Some(next) = next_char(last) {
            return Some(format!("{rest}{next}"));
        }
    }
    None
}

/// Next character in the byte order of UTF-8, which is also the order of code points.
pub(super) fn next_char(of: char) -> Option<char> {
    (of..=char::MAX).nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors() {
        assert_eq!(successor("a/"), Some("a0".to_owned()));
        assert_eq!(successor("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(successor("\u{d7ff}"), Some("\u{e000}".to_owned()));
        assert_eq!(successor(""), None);
        assert_eq!(successor("\u{10ffff}"), None);
    }

    #[test]
    fn ranges() {
        assert_eq!(Range::new("a", Some("b")), None);
        assert_eq!(Range::new("b", Some("a")).unwrap().from, "b");
        assert_eq!(Range::new("a", Some("a\0z")).unwrap().from, "a\u{1}");
        assert!(Range::new("", None).unwrap().end.as_str() > "\u{10ffff}".repeat(256).as_str());
    }
}
