//! Path patterns of descriptions: `{name}` for a non-empty segment, a last `{name..}` for the rest.

/// Returns true if a root path matches this pattern.
pub(crate) fn is_at(pattern: &str, path: &[String]) -> bool {
    pattern.strip_prefix('/').is_some_and(|pattern| matches(pattern, path))
}

/// Returns true if a path matches this pattern; the pattern has no leading `/`.
pub(crate) fn matches(pattern: &str, path: &[String]) -> bool {
    if pattern.is_empty() {
        return path.is_empty();
    }
    let mut left = path.iter();
    for word in pattern.split('/') {
        if word.starts_with('{') && word.ends_with("..}") {
            return left.next().is_some();
        }
        let Some(segment) = left.next() else { return false };
        let fits =
            if word.starts_with('{') && word.ends_with('}') { !segment.is_empty() } else { word == segment };
        if !fits {
            return false;
        }
    }
    left.next().is_none()
}
