//! Matches a path against a row's pattern.

use crate::Params;

/// What `pattern` takes from `path`, or none when it does not match.
///
/// A pattern is `/` (the address itself) or segments after `/`: a word, `{name}` for exactly one segment that is not empty,
/// `{name..}` for one or more, as many as possible. A slash at its end is a last empty segment.
pub(crate) fn matches<'a>(pattern: &'static str, path: &'a [String]) -> Option<Params<'a>> {
    let mut taken = Vec::new();
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    if pattern.is_empty() {
        return path.is_empty().then(Params::default);
    }
    follow(Some(pattern), path, &mut taken).then(|| Params::new(taken))
}

/// Whether what is left of the pattern fits what is left of the path. `None` is a pattern at its end.
fn follow<'a>(
    pattern: Option<&'static str>,
    path: &'a [String],
    taken: &mut Vec<(&'static str, &'a [String])>,
) -> bool {
    let Some(pattern) = pattern else { return path.is_empty() };
    let Some((segment, rest)) = path.split_first() else { return false };
    let (word, after) = match pattern.split_once('/') {
        Some((word, after)) => (word, Some(after)),
        None => (pattern, None),
    };
    let Some(name) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) else {
        return word == segment && follow(after, rest, taken);
    };
    match name.strip_suffix("..") {
        Some(name) => follow_rest(name, after, path, taken),
        None if segment.is_empty() => false,
        None => {
            taken.push((name, path.get(..1).unwrap_or_default()));
            follow(after, rest, taken) || undo(taken)
        }
    }
}

/// `{name..}` takes as many segments as leave something for what follows it.
fn follow_rest<'a>(
    name: &'static str,
    after: Option<&'static str>,
    path: &'a [String],
    taken: &mut Vec<(&'static str, &'a [String])>,
) -> bool {
    // At its end it takes all; in the middle, what follows decides, so that the longest that fits is found.
    let least = if after.is_none() { path.len() } else { 1 };
    (least..=path.len()).rev().any(|count| {
        let Some((mine, rest)) = path.split_at_checked(count) else { return false };
        taken.push((name, mine));
        follow(after, rest, taken) || undo(taken)
    })
}

fn undo(taken: &mut Vec<(&'static str, &[String])>) -> bool {
    taken.pop();
    false
}
