//! Objects on the server that no document describes: which `--prune` deletes, and which stay.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::documents::ConfigDocument;
use super::kinds::DocumentKind;
use super::plan::{find, is_described_by, is_group};
use super::references::repositories;
use super::state::{CurrentObject, ServerState};

/// Options of `packhouse apply` about objects that no document describes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PruneOptions {
    /// Deletes objects of the kinds that the documents contain.
    pub(super) prune: bool,
    /// Deletes repositories even if they have packages.
    pub(super) prune_repositories: bool,
}

/// Returns the objects that no document describes, of the kinds that the documents contain, in the
/// order of creation. An object with a reason stays; one without is deleted.
pub(super) fn unlisted<'s>(
    documents: &[ConfigDocument],
    described: &BTreeSet<(DocumentKind, &str)>,
    state: &'s ServerState,
    options: PruneOptions,
) -> Vec<(&'s CurrentObject, Option<String>)> {
    let kinds: BTreeSet<DocumentKind> = documents.iter().map(|document| document.kind).collect();
    let is_unlisted = |object: &&CurrentObject| {
        kinds.contains(&object.kind) && !described.contains(&(object.kind, object.id.as_str()))
    };
    let mut objects: Vec<&CurrentObject> = state.objects.iter().filter(is_unlisted).collect();
    objects.sort_by_key(|object| (object.kind, is_group(&object.spec)));
    let needed = needed_repositories(documents, &objects, state);
    let reason = |object: &CurrentObject| {
        // An interrupted replacement of a publisher leaves the old one beside the new one.
        let is_replaced = object.kind == DocumentKind::TrustedPublisher
            && documents.iter().any(|document| is_described_by(object, document));
        if is_replaced {
            return None;
        }
        if !options.prune {
            return Some("no document describes it; --prune deletes it".to_owned());
        }
        match object.kind {
            DocumentKind::Repository if needed.contains(object.name.as_str()) => {
                Some("a document or a group names it".to_owned())
            }
            DocumentKind::Repository if object.has_content && !options.prune_repositories => {
                Some("it has packages; --prune-repositories deletes it with them".to_owned())
            }
            DocumentKind::ServiceAccount if object.id == state.own_id => {
                Some("it owns the API token of this command".to_owned())
            }
            DocumentKind::Team if state.own_teams.contains(&object.id) => {
                Some("the owner of this command's API token is a member of it".to_owned())
            }
            _ => None,
        }
    };
    objects.into_iter().map(|object| (object, reason(object))).collect()
}

/// Returns the names of the repositories that documents name, or groups that stay.
fn needed_repositories<'s>(
    documents: &'s [ConfigDocument],
    unlisted: &[&'s CurrentObject],
    state: &'s ServerState,
) -> BTreeSet<&'s str> {
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    for document in documents {
        needed.extend(repositories(document.kind, &document.spec).into_iter().map(|(name, _)| name));
        // Without `members`, a group stays as it is.
        if let Some(group) = find(document, state).filter(|_| !document.spec.contains_key("members")) {
            needed.extend(members(&group.spec));
        }
    }
    for group in unlisted.iter().filter(|object| is_group(&object.spec)) {
        if needed.contains(group.name.as_str()) {
            needed.extend(members(&group.spec));
        }
    }
    needed
}

/// Returns the members of a group. Other objects have none that are repositories.
fn members(spec: &Map<String, Value>) -> Vec<&str> {
    let members = spec.get("members").filter(|_| is_group(spec)).and_then(Value::as_array);
    members.into_iter().flatten().filter_map(Value::as_str).collect()
}
