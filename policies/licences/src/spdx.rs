//! The part of SPDX licence expressions that a list of licences needs:
//! `MIT OR (Apache-2.0 AND BSD-3-Clause)`, `GPL-2.0-only WITH Classpath-exception-2.0`, `MPL-2.0+`.

/// Maximum number of words in an expression. It bounds the work that an untrusted package can
/// cause.
const MAX_WORDS: usize = 200;
/// Limit of nested parentheses.
const MAX_DEPTH: usize = 20;

/// A licence expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// A licence as it is written, with its exception if it has one.
    Licence(String),
    /// The user chooses one of these (`OR`).
    Any(Vec<Expression>),
    /// All of these apply (`AND`).
    All(Vec<Expression>),
}

impl Expression {
    /// Parses an expression. `None` if the text is not an expression.
    pub(crate) fn parse(text: &str) -> Option<Expression> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        if words.is_empty() || words.len() > MAX_WORDS {
            return None;
        }
        let mut reader = ExpressionReader { words: &words, depth: 0 };
        let read = reader.any()?;
        reader.words.is_empty().then_some(read)
    }

    /// Returns the first licence that is not allowed and makes the expression fail. `None` if the
    /// expression passes. `allows` decides about each licence.
    pub(crate) fn refused<'a>(&'a self, allows: &dyn Fn(&str) -> bool) -> Option<&'a str> {
        match self {
            Expression::Licence(name) => (!allows(name)).then_some(name.as_str()),
            Expression::All(parts) => parts.iter().find_map(|part| part.refused(allows)),
            Expression::Any(parts) => {
                let mut first = None;
                for part in parts {
                    match part.refused(allows) {
                        None => return None,
                        Some(name) => first = first.or(Some(name)),
                    }
                }
                first
            }
        }
    }
}

struct ExpressionReader<'a> {
    words: &'a [&'a str],
    depth: usize,
}

impl ExpressionReader<'_> {
    fn any(&mut self) -> Option<Expression> {
        self.joined("OR", Self::all, Expression::Any)
    }

    fn all(&mut self) -> Option<Expression> {
        self.joined("AND", Self::one, Expression::All)
    }

    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Option<Expression>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Option<Expression> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.takes(word) {
            parts.push(part(self)?);
        }
        if parts.len() == 1 { parts.pop() } else { Some(join(parts)) }
    }

    fn one(&mut self) -> Option<Expression> {
        if self.takes("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return None;
            }
            let inner = self.any()?;
            self.depth -= 1;
            return self.takes(")").then_some(inner);
        }
        let mut name = self.name()?.to_owned();
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.name()?);
        }
        Some(Expression::Licence(name))
    }

    fn takes(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if first.eq_ignore_ascii_case(word) => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn name(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        let is_word = ["AND", "OR", "WITH", "(", ")"].iter().any(|word| first.eq_ignore_ascii_case(word));
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+' | ':');
        if is_word || !first.chars().all(allowed) {
            return None;
        }
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, allowed: &[&str]) -> Option<String> {
        let expression = Expression::parse(text).unwrap();
        expression.refused(&|name| allowed.contains(&name)).map(str::to_owned)
    }

    #[test]
    fn a_choice_needs_one_accepted_licence_and_a_combination_all() {
        for (text, allowed, expected) in [
            ("MIT", &["MIT"][..], None),
            ("MIT", &[], Some("MIT")),
            ("GPL-3.0-only OR MIT", &["MIT"], None),
            ("GPL-3.0-only AND MIT", &["MIT"], Some("GPL-3.0-only")),
            ("MIT AND GPL-3.0-only OR Apache-2.0", &["Apache-2.0"], None),
            ("MIT AND (GPL-3.0-only OR Apache-2.0)", &["Apache-2.0"], Some("MIT")),
            (
                "GPL-2.0-only with Classpath-exception-2.0",
                &["GPL-2.0-only"],
                Some("GPL-2.0-only WITH Classpath-exception-2.0"),
            ),
            ("(MIT)", &["MIT"], None),
        ] {
            assert_eq!(refused(text, allowed), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_an_expression_is_refused() {
        for text in [
            "",
            "MIT License",
            "MIT OR",
            "(MIT",
            "MIT)",
            "OR",
            "MIT WITH",
            "a/b",
            &"(".repeat(150),
            &"MIT AND ".repeat(300),
        ] {
            assert_eq!(Expression::parse(text), None, "{text}");
        }
    }
}
