//! Names that code defines.

use std::collections::BTreeSet;

/// Words of a private vocabulary. docs/reference/glossary.md has the words to use.
const JARGON: [&str; 31] = [
    "told",
    "heard",
    "said",
    "spoken",
    "amiss",
    "anew",
    "besides",
    "deed",
    "seat",
    "desk",
    "bell",
    "stranger",
    "strangers",
    "condemned",
    "taped",
    "asked",
    "seen",
    "kept",
    "anybody",
    "whoever",
    "ourselves",
    "improvised",
    "retold",
    "laid",
    "noting",
    "noted",
    "shown",
    "meant",
    "wanted",
    "somebody",
    "nobody",
];

/// Keywords before the name of an item.
const ITEMS: [&str; 8] = ["struct", "enum", "trait", "type", "fn", "mod", "const", "static"];

/// Checks whether a word of a name belongs to the private vocabulary.
pub(crate) fn is_jargon(name: &str) -> bool {
    words(name).iter().any(|word| JARGON.contains(&word.as_str()))
}

/// The words of a name in snake case or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut word, mut is_upper) = (Vec::new(), String::new(), false);
    for letter in name.chars() {
        let starts_word = letter == '_' || letter.is_uppercase() && !is_upper;
        if starts_word && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        is_upper = letter.is_uppercase();
        if letter != '_' {
            word.extend(letter.to_lowercase());
        }
    }
    words.push(word);
    words
}

/// The names of items, variables, parameters and fields in a file, each once.
pub(crate) fn defined(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        let tokens = tokens(code);
        for (index, (name, rest)) in tokens.iter().enumerate() {
            let before = |offset: usize| {
                index.checked_sub(offset).and_then(|before| tokens.get(before)).map_or("", |(name, _)| *name)
            };
            let is_variable = before(1) == "let" || before(1) == "mut" && before(2) == "let";
            let is_typed = rest.starts_with(": ");
            if (ITEMS.contains(&before(1)) || is_variable || is_typed) && *name != "mut" {
                names.insert(*name);
            }
        }
    }
    names
}

/// The names of the types that a file defines. A name occurs once for each definition.
pub(crate) fn types(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let defined = lines.filter_map(|line| {
        let tokens = tokens(line);
        let mut names =
            tokens.iter().map(|(name, _)| *name).skip_while(|name| ["pub", "crate", "super"].contains(name));
        let item = names.next().filter(|item| ["struct", "enum", "trait", "type"].contains(item));
        item.and(names.next()).filter(|name| name.starts_with(|first: char| first.is_uppercase()))
    });
    defined.collect()
}

/// The identifiers of a line outside of string literals, each with the text after it.
fn tokens(line: &str) -> Vec<(&str, &str)> {
    let (mut tokens, mut start, mut is_string, mut is_escaped) = (Vec::new(), None, false, false);
    for (index, letter) in line.char_indices() {
        let is_name = !is_string && (letter.is_alphanumeric() || letter == '_');
        match start {
            None if is_name => start = Some(index),
            Some(begin) if !is_name => {
                tokens.extend(line.get(begin..index).zip(line.get(index..)));
                start = None;
            }
            _ => {}
        }
        is_string ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
    }
    if let Some(begin) = start {
        tokens.extend(line.get(begin..).map(|name| (name, "")));
    }
    tokens
}
