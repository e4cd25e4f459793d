//! Grams of a text for the search index: its pieces of one, two and three characters. Each is
//! written in hexadecimal digits, so that every database accepts it as a word.

use std::collections::BTreeSet;

/// Number of a text's first characters that are indexed. A search does not find later words.
const INDEXED: usize = 8 * 1024;
/// Number of words that are used; further ones are ignored.
const MAX_WORDS: usize = 8;
/// Characters of a search text that are used.
const MAX_TEXT: usize = 512;
/// Maximum length of a piece in characters.
const LONGEST: usize = 3;

/// All pieces of a text, each once, separated by spaces.
pub(super) fn of_text(text: &str) -> String {
    let mut found = BTreeSet::new();
    for word in text.chars().take(INDEXED).collect::<String>().split_whitespace() {
        let characters: Vec<char> = word.chars().collect();
        for length in 1..=LONGEST {
            found.extend(characters.windows(length).map(coded));
        }
    }
    found.into_iter().collect::<Vec<_>>().join(" ")
}

/// Pieces that find these words: the longest ones of each word.
pub(super) fn of_words(words: &[String]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for word in words {
        let characters: Vec<char> = word.chars().collect();
        found.extend(characters.windows(characters.len().clamp(1, LONGEST)).map(coded));
    }
    found.into_iter().collect()
}

/// Words of a search text, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.chars().take(MAX_TEXT).collect::<String>().to_lowercase().replace('\0', " ");
    text.split_whitespace().take(MAX_WORDS).map(str::to_owned).collect()
}

/// Pattern of LIKE with `ESCAPE '!'` that finds a word anywhere in a text.
pub(super) fn pattern(word: &str) -> String {
    format!("%{}%", word.replace('!', "!!").replace('%', "!%").replace('_', "!_"))
}

fn coded(piece: &[char]) -> String {
    hex::encode(piece.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_word_is_among_the_pieces_of_its_text() {
        let text = of_text("left-pad\nPads Strings ä");
        let indexed: BTreeSet<&str> = text.split(' ').collect();
        for found in ["left", "ft-p", "pad", "d", "ing", "Strings", "ä"] {
            let pieces = of_words(&words(found).iter().map(|_| found.to_owned()).collect::<Vec<_>>());
            assert!(pieces.iter().all(|piece| indexed.contains(piece.as_str())), "{found}: {pieces:?}");
        }
        let missing = of_words(&["padded".to_owned()]);
        assert!(!missing.iter().all(|piece| indexed.contains(piece.as_str())));
    }

    #[test]
    fn words_are_few_and_in_lower_case() {
        assert_eq!(words("  Ein \0 WORT "), ["ein", "wort"]);
        assert_eq!(words(&"a ".repeat(100)).len(), MAX_WORDS);
        assert_eq!(pattern("50%_!"), "%50!%!_!!%");
    }
}
