//! Plan of `packhouse apply`: the differences between the documents and the server.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::canonical::identity;
use super::documents::ConfigDocument;
use super::kinds::DocumentKind;
use super::prune::{self, PruneOptions};
use super::state::{CurrentObject, ServerState};
use super::validate;

/// Longest value in the plan, in characters.
const VALUE: usize = 200;

/// Work of `packhouse apply`, and everything that stays as it is.
#[derive(Debug, Default)]
pub(super) struct ApplyPlan {
    /// Steps in an order that works.
    pub(super) steps: Vec<PlanStep>,
    /// Objects that stay although no document describes them, with the reason.
    pub(super) left_alone: Vec<LeftAlone>,
    pub(super) unchanged: usize,
}

/// Object that stays although no document describes it.
#[derive(Debug)]
pub(super) struct LeftAlone {
    pub(super) kind: DocumentKind,
    pub(super) name: String,
    pub(super) reason: String,
}

/// Work on one object, named as in its document.
#[derive(Debug)]
pub(super) struct PlanStep {
    pub(super) kind: DocumentKind,
    pub(super) name: String,
    pub(super) action: PlanAction,
}

#[derive(Debug)]
pub(super) enum PlanAction {
    Create(Box<ConfigDocument>),
    Change {
        document: Box<ConfigDocument>,
        /// Id of the object on the server.
        id: String,
        changes: Vec<FieldChange>,
    },
    /// Writes only the credentials of an unchanged proxy, which cannot be compared.
    WriteCredentials {
        document: Box<ConfigDocument>,
        /// Id of the object on the server.
        id: String,
    },
    Delete {
        /// Id of the object on the server.
        id: String,
        is_group: bool,
    },
}

/// Difference between document and object in one field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldChange {
    /// Name of the field; for a setting of a repository, `settings.NAME`.
    pub(super) field: String,
    pub(super) old: Value,
    pub(super) new: Value,
}

/// Computes the plan. The error lists every problem of the documents.
pub(super) fn plan(
    documents: Vec<ConfigDocument>,
    state: &ServerState,
    options: PruneOptions,
) -> Result<ApplyPlan, Vec<String>> {
    let problems = validate::problems(&documents, state);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut plan = ApplyPlan::default();
    let mut described = BTreeSet::new();
    for document in &documents {
        if let Some(object) = find(document, state) {
            described.insert((object.kind, object.id.as_str()));
        }
    }
    let unlisted = prune::unlisted(&documents, &described, state, options);
    for document in documents {
        plan.add(document, state);
    }
    // A group is created and changed after all repositories that could be its members.
    plan.steps.sort_by_key(|step| (step.kind, step.is_group()));
    for (object, reason) in unlisted.into_iter().rev() {
        plan.add_unlisted(object, reason);
    }
    Ok(plan)
}

/// Finds the object that a document describes. If several do, the one that is up to date is chosen.
pub(super) fn find<'s>(document: &ConfigDocument, state: &'s ServerState) -> Option<&'s CurrentObject> {
    let same = || state.objects.iter().filter(|object| is_described_by(object, document));
    same().find(|object| changes(document, object).is_empty()).or_else(|| same().next())
}

/// Returns whether a document and an object have the same kind and the same identity.
pub(super) fn is_described_by(object: &CurrentObject, document: &ConfigDocument) -> bool {
    object.kind == document.kind
        && identity(object.kind, &object.name, &object.spec)
            == identity(document.kind, &document.name, &document.spec)
}

impl ApplyPlan {
    fn add(&mut self, document: ConfigDocument, state: &ServerState) {
        let (kind, name) = (document.kind, document.name.clone());
        let action = match find(&document, state) {
            None => PlanAction::Create(Box::new(document)),
            Some(object) => {
                let (changes, id) = (changes(&document, object), object.id.clone());
                if changes.is_empty() {
                    self.unchanged += 1;
                    if document.credentials.is_none() {
                        return;
                    }
                    PlanAction::WriteCredentials { document: Box::new(document), id }
                } else {
                    PlanAction::Change { document: Box::new(document), id, changes }
                }
            }
        };
        self.steps.push(PlanStep { kind, name, action });
    }

    fn add_unlisted(&mut self, object: &CurrentObject, reason: Option<String>) {
        let (kind, name) = (object.kind, object.name.clone());
        match reason {
            Some(reason) => self.left_alone.push(LeftAlone { kind, name, reason }),
            None => {
                let action = PlanAction::Delete { id: object.id.clone(), is_group: is_group(&object.spec) };
                self.steps.push(PlanStep { kind, name, action });
            }
        }
    }

    /// Counts the steps that create, change and delete.
    pub(super) fn counts(&self) -> [usize; 3] {
        let count = |is: fn(&PlanAction) -> bool| self.steps.iter().filter(|step| is(&step.action)).count();
        [
            count(|action| matches!(action, PlanAction::Create(_))),
            count(|action| matches!(action, PlanAction::Change { .. })),
            count(|action| matches!(action, PlanAction::Delete { .. })),
        ]
    }
}

/// Returns whether a spec of a repository describes a group.
pub(super) fn is_group(spec: &Map<String, Value>) -> bool {
    spec.get("kind").is_some_and(|kind| kind == "group")
}

impl PlanStep {
    fn is_group(&self) -> bool {
        match &self.action {
            PlanAction::Create(document)
            | PlanAction::Change { document, .. }
            | PlanAction::WriteCredentials { document, .. } => is_group(&document.spec),
            PlanAction::Delete { is_group, .. } => *is_group,
        }
    }
}

/// Compares the fields of a document with an object.
fn changes(document: &ConfigDocument, object: &CurrentObject) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for (field, new) in &document.spec {
        let old = object.spec.get(field).cloned().unwrap_or_default();
        match (document.kind, field.as_str()) {
            (DocumentKind::Repository, "settings") => changes.extend(setting_changes(&old, new)),
            (DocumentKind::Team, "members") => {
                let new = without(new, &object.external);
                if old != new {
                    changes.push(FieldChange { field: field.clone(), old, new });
                }
            }
            // The API fills in the public issuer, and a publisher was found by its issuer.
            (DocumentKind::TrustedPublisher, "issuer") => {}
            _ if old != *new => {
                changes.push(FieldChange { field: field.clone(), old, new: new.clone() });
            }
            _ => {}
        }
    }
    if !changes.is_empty() && !document.spec.contains_key("mode") {
        changes.extend(paused(object));
    }
    changes
}

/// The server pauses a policy when its rule changes. Without a `mode` in the document, the policy
/// stays paused, and the plan says so.
fn paused(object: &CurrentObject) -> Option<FieldChange> {
    let mode = object.spec.get("mode").filter(|mode| *mode != "paused")?;
    let new = json!("paused");
    Some(FieldChange { field: "mode".to_owned(), old: mode.clone(), new })
}

fn setting_changes(old: &Value, new: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for (name, new) in new.as_object().into_iter().flatten() {
        let old = old.get(name).cloned().unwrap_or_default();
        if old != *new {
            changes.push(FieldChange { field: format!("settings.{name}"), old, new: new.clone() });
        }
    }
    changes
}

/// Removes the members of a team that are members through an external group anyway.
fn without(members: &Value, external: &BTreeSet<String>) -> Value {
    let members = members.as_array().into_iter().flatten();
    let is_manual = |member: &&Value| !member.as_str().is_some_and(|member| external.contains(member));
    members.filter(is_manual).cloned().collect()
}

impl fmt::Display for ApplyPlan {
    /// Writes a line for each step, and one for each changed field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PlanStep { kind, name, action } in &self.steps {
            let kind = kind.name();
            match action {
                PlanAction::Create(_) => writeln!(f, "create {kind} {name}")?,
                PlanAction::Change { changes, .. } => {
                    writeln!(f, "change {kind} {name}")?;
                    for FieldChange { field, old, new } in changes {
                        writeln!(f, "  {field}: {} → {}", shortened(old), shortened(new))?;
                    }
                }
                PlanAction::WriteCredentials { .. } => {
                    writeln!(f, "write {kind} {name}: its upstream credentials, which cannot be compared")?;
                }
                PlanAction::Delete { .. } => writeln!(f, "delete {kind} {name}")?,
            }
        }
        for LeftAlone { kind, name, reason } in &self.left_alone {
            writeln!(f, "left alone {} {name}: {reason}", kind.name())?;
        }
        Ok(())
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests;
