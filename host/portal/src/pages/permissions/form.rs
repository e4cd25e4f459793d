//! Conversion between permissions and the fields of the matrix.
//!
//! A row has the checkboxes `NAME` and the text `NAME-packages`. `NAME` is `all` for all
//! repositories, `chosen` for the repositories that `repositories` lists, `of-KEY` for a row whose
//! key `named` lists, and `like-INDEX-may` for the names that match the text `like-INDEX`. A key is
//! a repository's id, with `~2`, `~3` and so on after it if the repository has several entries.

use packhouse_identity::permissions::{Permissions, RepositoryPermission};
use serde_json::{Map, Value, json};

use super::{ALL, action_name};
use crate::fields::Fields;

/// Name of the field for the patterns of packages of a row.
pub(super) fn packages_field(name: &str) -> String {
    format!("{name}-packages")
}

/// Returns the lines of a text that are not empty, trimmed.
pub(in crate::pages) fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Converts permissions to the fields of the form.
pub(in crate::pages) fn fields(held: &Permissions) -> Fields {
    let mut fields = Vec::new();
    for permission in &held.organization {
        fields.push(("organization".to_owned(), permission.name().to_owned()));
    }
    let mut patterns = 0;
    for (at, one) in held.repositories.iter().enumerate() {
        let name = match (&one.repository, &one.repository_name) {
            (Some(repository), _) => {
                let same = |other: &&RepositoryPermission| other.repository == one.repository;
                let before = held.repositories.iter().take(at).filter(same).count();
                match (repository.as_str(), before) {
                    (ALL, 0) => "all".to_owned(),
                    (_, 0) => named(&mut fields, repository.clone()),
                    (_, before) => named(&mut fields, format!("{repository}~{}", before + 1)),
                }
            }
            (None, pattern) => {
                let name = format!("like-{patterns}-may");
                fields.push((format!("like-{patterns}"), pattern.clone().unwrap_or_default()));
                patterns += 1;
                name
            }
        };
        if let Some(packages) = &one.packages {
            fields.push((packages_field(&name), packages.join("\n")));
        }
        fields.extend(one.actions.iter().map(|action| (name.clone(), action_name(*action).to_owned())));
    }
    Fields(fields)
}

/// Lists the key of a row. Returns the row's name.
fn named(fields: &mut Vec<(String, String)>, key: String) -> String {
    let name = format!("of-{key}");
    fields.push(("named".to_owned(), key));
    name
}

/// Returns the indexes of the rows for names by pattern: those of the form, and one for a new row.
pub(super) fn pattern_rows(form: &Fields) -> Vec<usize> {
    let mut indexes: Vec<usize> = form.0.iter().filter_map(|(name, _)| index(name)).collect();
    indexes.sort_unstable();
    indexes.dedup();
    indexes.retain(|index| {
        let name = format!("like-{index}");
        !form.text(&name).is_empty() || form.has(&format!("{name}-may"))
    });
    let new = indexes.last().map_or(0, |last| last.saturating_add(1));
    indexes.push(new);
    indexes
}

/// Returns the index in the name of a field `like-INDEX`.
fn index(name: &str) -> Option<usize> {
    name.strip_prefix("like-")?.parse().ok()
}

/// Converts the form to the body of the API call.
pub(in crate::pages) fn body(form: &Fields) -> Value {
    let mut repositories = Vec::new();
    if form.has("all") {
        repositories.push(entry(form, "repository", ALL, "all"));
    }
    for key in form.all("named") {
        let name = format!("of-{key}");
        if form.has(&name) {
            let repository = key.split_once('~').map_or(key, |(repository, _)| repository);
            repositories.push(entry(form, "repository", repository, &name));
        }
    }
    if form.has("chosen") {
        repositories.extend(form.all("repositories").map(|id| entry(form, "repository", id, "chosen")));
    }
    for index in pattern_rows(form) {
        let (pattern, name) = (format!("like-{index}"), format!("like-{index}-may"));
        if form.has(&name) {
            repositories.push(entry(form, "repository_name", form.text(&pattern), &name));
        }
    }
    json!({"organization": form.list("organization"), "repositories": repositories})
}

/// Returns the entry of a row. `field` is the field that names the repositories.
fn entry(form: &Fields, field: &str, repositories: &str, name: &str) -> Value {
    let mut entry = Map::new();
    entry.insert(field.to_owned(), repositories.into());
    entry.insert("actions".to_owned(), form.list(name));
    let packages = lines(form.text(&packages_field(name)));
    if !packages.is_empty() {
        entry.insert("packages".to_owned(), packages.into());
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_survive_a_round_trip_through_the_form() {
        let held = Permissions::read(
            r#"{"organization": ["manage-members"], "repositories": [
                {"repository": "*", "actions": ["read"]},
                {"repository": "7", "actions": ["publish", "delete"]},
                {"repository": "7", "actions": ["publish"], "packages": ["@acme/*", "tool"]},
                {"repository": "*", "actions": ["publish"], "packages": ["x"]},
                {"repository_name": "team-*", "actions": ["read", "manage"]},
                {"repository_name": "a~b", "actions": ["publish"], "packages": ["y*"]}]}"#,
        );
        assert_eq!(held.repositories.len(), 6);
        let again: Permissions = serde_json::from_value(body(&fields(&held))).unwrap();
        assert_eq!(again, held);
    }

    #[test]
    fn chosen_repositories_get_the_chosen_actions_and_patterns() {
        let form = Fields::read(
            b"repositories=3&repositories=4&chosen=read&chosen=publish&chosen-packages=+a*%0D%0A%0D%0Ab",
        );
        let entry =
            |id: &str| json!({"repository": id, "actions": ["read", "publish"], "packages": ["a*", "b"]});
        assert_eq!(body(&form)["repositories"], json!([entry("3"), entry("4")]));
    }

    #[test]
    fn a_row_without_actions_grants_nothing() {
        let form = Fields::read(b"all-packages=a&named=7&of-7-packages=b&like-0=team-*&repositories=3");
        assert_eq!(body(&form), json!({"organization": [], "repositories": []}));
        assert_eq!(pattern_rows(&form), [0, 1], "the pattern stays in the form");
        assert_eq!(pattern_rows(&Fields::read(b"like-=x&like-a=x&like-2-may=read&like-4=+")), [0]);
    }
}
