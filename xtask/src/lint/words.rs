//! Words of comments, of string literals and of sentences.

/// First words that make a fragment of a doc comment, such as "What stands here".
const OPENERS: [&str; 24] = [
    "what",
    "whether",
    "who",
    "whom",
    "whose",
    "of",
    "as",
    "by",
    "those",
    "none",
    "nobody",
    "where",
    "wherever",
    "that",
    "from",
    "with",
    "in",
    "the same",
    "see the module",
    "nothing",
    "nor",
    "so",
    "whoever",
    "whatever",
];

/// Words after "is no" that make a usual phrase of it, such as "is no longer".
const USUAL_AFTER_NO: [&str; 3] = ["longer", "match", "such"];

/// Checks whether the first line of a doc comment is a fragment.
pub(crate) fn is_fragment(line: &str) -> bool {
    let line = line.to_lowercase();
    OPENERS.iter().any(|opener| {
        line.strip_prefix(opener)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

/// Checks whether a text negates a noun where it should negate the verb.
pub(crate) fn negates_a_noun(text: &str) -> bool {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_negation = |[before, verb, negation, next, last]: [&str; 5]| {
        let verb = verb.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let none = negation.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        if ["is", "are", "was", "were"].contains(&verb) && none == "none" {
            return true;
        }
        let is_compared = ["more", "less"].contains(&next) && last == "than";
        let next = next.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        ["is", "was"].contains(&verb)
            && negation == "no"
            && before != "there"
            && next.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !is_compared
            && !USUAL_AFTER_NO.contains(&next)
    };
    (0..words.len()).any(|index| {
        let word = |offset: usize| words.get(index + offset).copied().unwrap_or_default();
        let before = index.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
        is_negation([before, word(0), word(1), word(2), word(3)])
    })
}

/// The string literals of a line of code, without their quotes. Literals of several lines are
/// ignored.
pub(crate) fn string_literals(line: &str) -> Vec<&str> {
    let (mut literals, mut start, mut is_escaped) = (Vec::new(), None, false);
    for (index, letter) in line.char_indices() {
        match (letter, start) {
            _ if is_escaped => is_escaped = false,
            ('\\', Some(_)) => is_escaped = true,
            ('"', None) => start = Some(index + 1),
            ('"', Some(begin)) => {
                literals.extend(line.get(begin..index));
                start = None;
            }
            _ => {}
        }
    }
    literals
}

/// The sentences of a page in Markdown, without code, headings and the targets of links.
pub(crate) fn sentences(page: &str) -> Vec<String> {
    let (mut sentences, mut paragraph, mut is_code) = (Vec::new(), String::new(), false);
    for line in page.lines() {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_item = ["- ", "* ", "|", "> ", "1. ", "2. ", "3. ", "4. ", "5. ", "6. ", "7. ", "8. ", "9. "]
            .iter()
            .any(|mark| line.starts_with(mark));
        if is_fence || is_code || is_item || line.is_empty() || line.starts_with('#') {
            split(&std::mem::take(&mut paragraph), &mut sentences);
        }
        if is_fence || is_code || line.starts_with('#') {
            continue;
        }
        if line.starts_with('|') {
            line.split('|').for_each(|cell| split(cell, &mut sentences));
        } else {
            paragraph.push(' ');
            paragraph.push_str(line.trim_start_matches(['-', '*', '>', ' ']));
        }
    }
    split(&paragraph, &mut sentences);
    sentences
}

/// Adds the sentences of a paragraph.
fn split(paragraph: &str, sentences: &mut Vec<String>) {
    let mut sentence = String::new();
    for word in without_targets(paragraph).split_whitespace() {
        sentence.push_str(word);
        sentence.push(' ');
        if word.trim_end_matches([')', '"', '*', '`', '\u{201d}']).ends_with(['.', '?', '!']) {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    if sentence.contains(char::is_alphanumeric) {
        sentences.push(sentence);
    }
}

/// The text with `[text](target)` as `text`.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    whole
}
