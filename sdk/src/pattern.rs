//! Matching of a path against a row's pattern.

use crate::Params;

/// Returns the parameters if `pattern` matches `path`.
///
/// A pattern is `/` (the address itself) or segments after `/`. A segment is a word, `{name}` for
/// exactly one non-empty segment, or `{name..}` for one or more, as many as possible. A slash at
/// the end is an empty last segment.
pub(crate) fn matches<'a>(pattern: &'static str, path: &'a [String]) -> Option<Params<'a>> {
    let mut taken = Vec::new();
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    if pattern.is_empty() {
        return path.is_empty().then(Params::default);
    }
    follow(Some(pattern), path, &mut taken).then(|| Params::new(taken))
}

/// True if the rest of the pattern matches the rest of the path. A `pattern` of `None` is the end
/// of the pattern.
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

/// Matches `{name..}` to the largest number of segments with which the rest of the pattern matches.
fn follow_rest<'a>(
    name: &'static str,
    after: Option<&'static str>,
    path: &'a [String],
    taken: &mut Vec<(&'static str, &'a [String])>,
) -> bool {
    // At the end of the pattern, the parameter must take all segments. Elsewhere, try the longest
    // match first.
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

#[cfg(test)]
mod tests {
    use super::matches;

    /// Returns the value of each parameter as `name=a/b`; `None` if the pattern does not match.
    fn taken(pattern: &'static str, path: &str) -> Option<String> {
        let segments: Vec<String> =
            path.split('/').skip(1).filter(|_| path != "/").map(str::to_owned).collect();
        let params = matches(pattern, &segments)?;
        let names = pattern.split(['{', '}']).skip(1).step_by(2).map(|name| name.trim_end_matches(".."));
        Some(names.map(|name| format!("{name}={}", params.joined(name))).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn patterns_take_what_they_name() {
        let table = [
            ("/", "/", Some("")),
            ("/", "/a", None),
            ("/a/b", "/a/b", Some("")),
            ("/a/b", "/a", None),
            ("/a", "/a/b", None),
            ("/a", "/a/", None),
            ("/a/", "/a/", Some("")),
            ("/a/", "/a", None),
            ("/{x}", "/", None),
            ("/{x}", "/a", Some("x=a")),
            ("/{x}", "/a/b", None),
            ("/{x}/", "/a/", Some("x=a")),
            ("/{x}/b", "//b", None),
            ("/simple/{project}/", "/simple/pip/", Some("project=pip")),
            ("/{path..}", "/", None),
            ("/{path..}", "/a", Some("path=a")),
            ("/{path..}", "/a/b/", Some("path=a/b/")),
            ("/x/{path..}", "/x", None),
            ("/{name..}/tags/list", "/a/b/tags/list", Some("name=a/b")),
            ("/{name..}/tags/list", "/tags/list", None),
            // The first parameter is as long as possible, because an image may itself be called
            // `manifests`.
            ("/{name..}/manifests/{tag}", "/a/manifests/manifests/1", Some("name=a/manifests tag=1")),
            ("/{name..}/manifests/{tag}", "/a/manifests/", None),
            ("/{name..}/blobs/uploads/{id}", "/a/blobs/uploads/9", Some("name=a id=9")),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(taken(pattern, path).as_deref(), expected, "{pattern} {path}");
        }
    }
}
