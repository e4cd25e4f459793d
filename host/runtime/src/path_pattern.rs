//! Patterns of paths as descriptions write them: `{name}` for a segment that is not empty, a last `{name..}` for the rest.

/// Whether a path at the root is as this pattern says.
pub(crate) fn is_at(pattern: &str, path: &[String]) -> bool {
    pattern.strip_prefix('/').is_some_and(|pattern| matches(pattern, path))
}

/// Whether a path is as this pattern says, which begins with no `/`.
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
