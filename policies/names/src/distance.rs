//! The edit distance of two names: letters that are changed, left out, added, or swapped with their
//! neighbour.

/// Longest name that is compared, in characters. A longer name is not the result of a typing
/// mistake.
const MAX_CHARACTERS: usize = 128;

/// Returns true if the distance of the names is at most `most`. Each letter is edited at most once
/// (optimal string alignment).
pub(crate) fn is_within(one: &str, other: &str, most: usize) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > most || one.len().max(other.len()) > MAX_CHARACTERS {
        return false;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, letter) in one.iter().enumerate() {
        let mut now = vec![row + 1];
        let mut left = None;
        for (column, with) in other.iter().enumerate() {
            let at = |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&last, column + 1) + 1).min(at(&now, column) + 1);
            best = best.min(at(&last, column) + usize::from(letter != with));
            if previous == Some(with) && left == Some(letter) {
                best = best.min(at(&before_last, column.wrapping_sub(1)) + 1);
            }
            now.push(best);
            left = Some(with);
        }
        // If all distances in a row exceed `most`, all distances in later rows exceed it, too.
        if now.iter().all(|cell| *cell > most) {
            return false;
        }
        before_last = std::mem::replace(&mut last, now);
        previous = Some(letter);
    }
    last.last().is_some_and(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, distance) in [
            ("requests", "requests", 0),
            ("requests", "request", 1),
            ("requests", "reqeusts", 1),
            ("requests", "rqeuests", 1),
            ("requests", "reuqetss", 2),
            ("lodash", "lodahs", 1),
            ("abcdef", "ghijkl", 6),
            ("", "ab", 2),
        ] {
            assert!(is_within(one, other, distance), "{one} {other}");
            assert!(distance == 0 || !is_within(one, other, distance - 1), "{one} {other}");
        }
        assert!(!is_within(&"a".repeat(200), &"a".repeat(200), 3));
    }
}
