//! Checks of the documents before anything is changed: everything that the documents and the state
//! of the server show.

use crate::cli::json::Members as _;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::canonical::identity;
use super::documents::ConfigDocument;
use super::kinds::DocumentKind;
use super::plan::{find, is_described_by};
use super::references::{named, repositories};
use super::state::ServerState;

/// Returns a sentence with file and line for each problem.
pub(super) fn problems(documents: &[ConfigDocument], state: &ServerState) -> Vec<String> {
    let mut problems = duplicates(documents);
    let names = ReferableNames::new(documents, state);
    for document in documents {
        let mut add = |problem: String| {
            problems.push(format!(
                "{}: {} {:?}: {problem}",
                document.place,
                document.kind.name(),
                document.name
            ));
        };
        shape(document, &mut add);
        names.check(document, &mut add);
        on_server(document, state, &mut add);
    }
    problems.extend(disagreements(documents));
    problems
}

/// Finds documents of the same object.
fn duplicates(documents: &[ConfigDocument]) -> Vec<String> {
    let (mut first, mut problems) = (BTreeMap::new(), Vec::new());
    for document in documents {
        let ConfigDocument { kind, name, place, .. } = document;
        let keys = [identity(*kind, name, &document.spec), name.clone()];
        let earlier = keys.iter().find_map(|key| first.get(&(*kind, key.clone())));
        if let Some(earlier) = earlier {
            problems.push(format!("{place}: {} {name:?} is also described in {earlier}", kind.name()));
        }
        for key in keys {
            first.entry((*kind, key)).or_insert(place);
        }
    }
    problems
}

/// Checks a document by itself.
fn shape(document: &ConfigDocument, add: &mut impl FnMut(String)) {
    let field = |field: &str| document.spec.get(field).unwrap_or(&Value::Null);
    if document.name.is_empty() {
        add("`name` is empty".to_owned());
    }
    if field("repositories").as_str().is_some_and(|text| text != "*") {
        add("`repositories` must be a list of names of repositories, or \"*\"".to_owned());
    }
    for entry in field("permissions").at("repositories").as_array().into_iter().flatten() {
        if entry.at("repository").is_string() == entry.at("repository_name").is_string() {
            add("an entry of `permissions` must have either `repository` or `repository_name`".to_owned());
        }
    }
    if let Some(credentials) = &document.credentials {
        let password = credentials.at("password");
        if password.at("from_env").is_string() == password.at("from_file").is_string() {
            add("the password of the upstream must have either `from_env` or `from_file`".to_owned());
        }
    }
}

/// Names that documents can refer to.
struct ReferableNames<'a> {
    repositories: BTreeSet<&'a str>,
    teams: BTreeSet<&'a str>,
    members: BTreeSet<&'a str>,
}

impl<'a> ReferableNames<'a> {
    fn new(documents: &'a [ConfigDocument], state: &'a ServerState) -> ReferableNames<'a> {
        let described = |kind: DocumentKind| {
            let documents = documents.iter().filter(move |document| document.kind == kind);
            documents.map(|document| document.name.as_str())
        };
        let known = |ids: &'a BTreeMap<String, String>, kind: DocumentKind| {
            ids.keys().map(String::as_str).chain(described(kind)).collect()
        };
        ReferableNames {
            repositories: known(&state.ids.repositories, DocumentKind::Repository),
            teams: known(&state.ids.teams, DocumentKind::Team),
            members: known(&state.ids.members, DocumentKind::ServiceAccount),
        }
    }

    /// Checks that the objects to which a document refers exist or will exist.
    fn check(&self, document: &ConfigDocument, add: &mut impl FnMut(String)) {
        for (name, field) in repositories(document.kind, &document.spec) {
            if !self.repositories.contains(name) {
                add(format!("`{field}` names the repository {name:?}, which does not exist"));
            }
        }
        if document.kind == DocumentKind::ServiceAccount {
            for (name, field) in named(&document.spec, "teams", "teams") {
                if !self.teams.contains(name) {
                    add(format!("`{field}` names the team {name:?}, which does not exist"));
                }
            }
        }
        if document.kind == DocumentKind::Team {
            for (name, field) in named(&document.spec, "members", "members") {
                if !self.members.contains(name) {
                    add(format!("`{field}` names {name:?}, who is neither a member nor a service account"));
                }
            }
        }
    }
}

/// Checks a document against the object that it describes.
fn on_server(document: &ConfigDocument, state: &ServerState, add: &mut impl FnMut(String)) {
    let count = state.objects.iter().filter(|object| is_described_by(object, document)).count();
    if count > 1 && document.kind != DocumentKind::TrustedPublisher {
        add(format!(
            "the server has {count} objects of this kind with this name: delete or rename the others"
        ));
    }
    match find(document, state) {
        None if document.kind == DocumentKind::Webhook && document.secret_file.is_none() => add(
            "a new webhook needs `secret_file`, because the server shows the secret of a webhook only once"
                .to_owned(),
        ),
        Some(object) if document.kind == DocumentKind::Repository => {
            for field in ["format", "kind"] {
                let (old, new) = (object.spec.get(field), document.spec.get(field));
                if let (Some(old), Some(new)) = (old, new)
                    && old != new
                {
                    add(format!("`{field}` is {old} on the server and cannot be changed to {new}"));
                }
            }
        }
        _ => {}
    }
}

/// Finds service accounts and teams whose documents disagree about a membership.
fn disagreements(documents: &[ConfigDocument]) -> Vec<String> {
    let of = |kind: DocumentKind, field: &'static str| {
        let found = documents.iter().filter(move |document| {
            document.kind == kind && document.spec.get(field).is_some_and(Value::is_array)
        });
        found.map(move |document| {
            let names = named(&document.spec, field, field).into_iter().map(|(name, _)| name);
            (document, names.collect::<BTreeSet<&str>>())
        })
    };
    let mut problems = Vec::new();
    for (account, teams) in of(DocumentKind::ServiceAccount, "teams") {
        for (team, members) in of(DocumentKind::Team, "members") {
            if teams.contains(team.name.as_str()) != members.contains(account.name.as_str()) {
                problems.push(format!(
                    "{} and {} disagree whether the service account {:?} is a member of the team {:?}",
                    account.place, team.place, account.name, team.name
                ));
            }
        }
    }
    problems
}
