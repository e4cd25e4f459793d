//! Descriptions of permissions in words.

use maud::{Markup, html};
use packhouse_identity::permissions::{Permissions, RepositoryAction, RepositoryPermission};

use super::{ALL, in_words};
use crate::field::Choice;
use crate::parts;

/// Maximum number of patterns of packages that a sentence names.
const MAX_PATTERNS: usize = 5;

/// Returns the name of an action in the API.
pub(in crate::pages) fn action_name(action: RepositoryAction) -> &'static str {
    match action {
        RepositoryAction::Read => "read",
        RepositoryAction::Publish => "publish",
        RepositoryAction::Delete => "delete",
        RepositoryAction::Manage => "manage",
    }
}

/// Names a repository: by its name if it is one of the choices, else by its id.
pub(super) fn place(repository: &str, choices: &[Choice]) -> String {
    match repository {
        ALL => "All repositories".to_owned(),
        id => choices.iter().find(|choice| choice.value == id).map_or(id, |choice| &choice.label).to_owned(),
    }
}

/// Summarizes permissions in a few words.
pub(in crate::pages) fn in_short(held: &Permissions) -> String {
    let mut words: Vec<String> =
        held.organization.iter().map(|permission| permission.name().to_owned()).collect();
    let (mut named, mut patterns) = (Vec::new(), 0_usize);
    for one in &held.repositories {
        match one.repository.as_deref() {
            Some(ALL) => {
                let actions: Vec<&str> = one.actions.iter().map(|action| action_name(*action)).collect();
                let limit = if one.packages.is_some() { " (some packages)" } else { "" };
                words.push(format!("{} in all repositories{limit}", actions.join(", ")));
            }
            Some(id) if named.contains(&id) => {}
            Some(id) => named.push(id),
            None => patterns += 1,
        }
    }
    match named.len() {
        0 => {}
        1 => words.push("one repository".to_owned()),
        many => words.push(format!("{many} repositories")),
    }
    if patterns > 0 {
        words.push("repositories by name".to_owned());
    }
    if words.is_empty() { "no permissions yet".to_owned() } else { words.join("; ") }
}

/// Says what permissions allow: a list with a sentence for each entry.
pub(in crate::pages) fn sentences(held: &Permissions, choices: &[Choice]) -> Markup {
    html! {
        ul.steps {
            @for permission in &held.organization { li { (in_words(*permission)) "." } }
            @for one in &held.repositories { li { (sentence(one, choices)) } }
            @if held.organization.is_empty() && held.repositories.is_empty() { li { "Nothing yet." } }
        }
    }
}

fn sentence(one: &RepositoryPermission, choices: &[Choice]) -> Markup {
    let packages = one.packages.as_deref();
    let is_limited = |action: &RepositoryAction| {
        packages.is_some() && matches!(action, RepositoryAction::Publish | RepositoryAction::Delete)
    };
    let names = |limited: bool| -> Vec<&'static str> {
        let actions = one.actions.iter().filter(|action| is_limited(action) == limited);
        actions.map(|action| action_name(*action)).collect()
    };
    let (whole, limited) = (names(false), names(true));
    html! {
        @match (&one.repository, &one.repository_name) {
            (Some(repository), _) => (place(repository, choices)),
            (None, pattern) => { "Repositories named " (parts::isolated(pattern.as_deref().unwrap_or_default())) },
        }
        ": "
        @if one.actions.is_empty() { "nothing" }
        (whole.join(", "))
        @if !whole.is_empty() && !limited.is_empty() { "; " }
        @if !limited.is_empty() { (limited.join(", ")) " only packages named " (patterns(packages.unwrap_or_default())) }
        "."
    }
}

/// Lists patterns of packages, at most `MAX_PATTERNS`.
pub(in crate::pages) fn patterns(all: &[String]) -> Markup {
    let more = all.len().saturating_sub(MAX_PATTERNS);
    html! {
        @for (at, pattern) in all.iter().take(MAX_PATTERNS).enumerate() {
            @if at > 0 { ", " }
            (parts::isolated(pattern))
        }
        @if more > 0 { " and " (more) " more" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(repositories: &str) -> Permissions {
        Permissions::read(&format!("{{\"repositories\": {repositories}}}"))
    }

    #[test]
    fn a_summary_counts_repositories_once() {
        for (repositories, summary) in [
            ("[]", "no permissions yet"),
            (r#"[{"repository": "*", "actions": ["read", "publish"]}]"#, "read, publish in all repositories"),
            (
                r#"[{"repository": "3", "actions": ["read"]}, {"repository": "3", "actions": ["publish"], "packages": ["a"]}]"#,
                "one repository",
            ),
            (
                r#"[{"repository": "3", "actions": ["read"]}, {"repository": "4", "actions": ["read"]}, {"repository_name": "x*", "actions": ["read"]}]"#,
                "2 repositories; repositories by name",
            ),
        ] {
            assert_eq!(in_short(&read(repositories)), summary);
        }
    }

    #[test]
    fn sentences_tell_limited_from_unlimited_actions() {
        let choices = [Choice { value: "3".to_owned(), label: "lib".to_owned() }];
        let held = read(
            r#"[{"repository": "3", "actions": ["read", "publish"], "packages": ["<b>*"]},
                {"repository_name": "team-*", "actions": ["manage"]}, {"repository": "*", "actions": ["read"]}]"#,
        );
        let text = sentences(&held, &choices).into_string();
        for part in [
            "lib: read; publish only packages named <bdi>&lt;b&gt;*</bdi>.",
            "Repositories named <bdi>team-*</bdi>: manage.",
            "All repositories: read.",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
