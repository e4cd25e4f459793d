//! Validation of permissions that a caller sends.

use super::{Permissions, RepositoryPermission};

/// Most patterns in one list.
const MAX_PATTERNS: usize = 100;
/// Most entries for repositories, and most patterns of packages in all of them together. Every
/// request of the member compares them.
const MAX_ENTRIES: usize = 1_000;
/// Most characters of a pattern.
const MAX_PATTERN_CHARACTERS: usize = 256;

impl Permissions {
    /// Checks the entries for repositories. The error is a sentence for the caller.
    pub fn check(&self) -> Result<(), String> {
        let patterns: usize =
            self.repositories.iter().filter_map(|entry| entry.packages.as_ref()).map(Vec::len).sum();
        if self.repositories.len() > MAX_ENTRIES || patterns > MAX_ENTRIES {
            return Err(format!(
                "`repositories` may have at most {MAX_ENTRIES} entries, and at most {MAX_ENTRIES} patterns of \
                 `packages` in all entries together."
            ));
        }
        self.repositories.iter().try_for_each(check_entry)
    }
}

fn check_entry(entry: &RepositoryPermission) -> Result<(), String> {
    match (&entry.repository, &entry.repository_name) {
        (Some(_), None) => {}
        (None, Some(pattern)) if is_pattern(pattern) => {}
        (None, Some(_)) => {
            return Err(format!(
                "`repository_name` must be a pattern of 1 to {MAX_PATTERN_CHARACTERS} characters."
            ));
        }
        _ => {
            return Err("Each entry of `repositories` must have exactly one of `repository` and \
                 `repository_name`."
                .to_owned());
        }
    }
    entry.packages.as_deref().map_or(Ok(()), check_patterns)
}

/// Checks a list of package patterns: of permissions, a token, a service key or a trusted
/// publisher. The error is a sentence for the caller.
pub fn check_patterns(patterns: &[String]) -> Result<(), String> {
    let fits = (1..=MAX_PATTERNS).contains(&patterns.len());
    if fits && patterns.iter().all(|pattern| is_pattern(pattern)) {
        return Ok(());
    }
    Err(format!(
        "`packages` must be a list of 1 to {MAX_PATTERNS} patterns, each of 1 to {MAX_PATTERN_CHARACTERS} \
         characters."
    ))
}

fn is_pattern(text: &str) -> bool {
    (1..=MAX_PATTERN_CHARACTERS).contains(&text.chars().count())
}
