//! `packhouse export-config`: writes the configuration of a server as documents, without secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use packhouse_config::repository_settings;
use serde_json::{Map, Value, json};

use super::kinds::DocumentKind;
use super::plan::is_group;
use super::state::{CurrentObject, ServerState};
use super::yaml;
use crate::cli::print;
use crate::cli::remote::ServerFlags;

/// Arguments of `packhouse export-config [--into FOLDER]`.
#[derive(Debug, Args)]
pub(crate) struct ExportConfigArguments {
    /// Folder for the documents, one file for each kind [default: standard output]
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// Export only this kind of documents, such as Team; can be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = DocumentKind::of)]
    kinds: Vec<DocumentKind>,
    /// Replace files that exist already
    #[arg(long, requires = "into")]
    overwrite: bool,
    #[command(flatten)]
    server: ServerFlags,
}

impl ExportConfigArguments {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let api = self.server.required()?;
        let kinds: BTreeSet<DocumentKind> = if self.kinds.is_empty() {
            DocumentKind::ALL.into()
        } else {
            self.kinds.iter().copied().collect()
        };
        let state = ServerState::read(&api, &kinds).await;
        let state = state.context("the configuration cannot be read (--kind exports single kinds)")?;
        let files = files(state.objects);
        let Some(folder) = &self.into else {
            let texts: Vec<&str> = files.values().map(|file| file.text.trim_end()).collect();
            return print(&texts.join("\n---\n"));
        };
        write(folder, &files, self.overwrite)?;
        for (kind, file) in &files {
            print(&format!("{}: {} documents", folder.join(file_name(*kind)).display(), file.documents))?;
        }
        Ok(())
    }
}

/// Documents of one kind, as text.
#[derive(Debug, Default)]
struct ExportedFile {
    text: String,
    documents: usize,
}

/// Returns the name of the file for documents of a kind.
fn file_name(kind: DocumentKind) -> String {
    format!("{}.yaml", kind.segment())
}

/// Writes the documents of all objects, in the order of creation and of their names.
fn files(mut objects: Vec<CurrentObject>) -> BTreeMap<DocumentKind, ExportedFile> {
    objects.sort_by(|one, other| {
        let key = |object: &CurrentObject| (object.kind, is_group(&object.spec));
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    let mut files: BTreeMap<DocumentKind, ExportedFile> = BTreeMap::new();
    let mut labels = BTreeSet::new();
    for object in objects {
        let file = files.entry(object.kind).or_default();
        if file.documents > 0 {
            file.text.push_str("---\n");
        }
        file.documents += 1;
        file.text.push_str(&document(object, &mut labels));
    }
    files
}

/// Writes one document. Publishers have no names in the API, so a number makes their names unique.
fn document(object: CurrentObject, labels: &mut BTreeSet<String>) -> String {
    let CurrentObject { kind, name, spec, .. } = object;
    let mut label = name.clone();
    let mut number = 1;
    while kind == DocumentKind::TrustedPublisher && !labels.insert(label.clone()) {
        number += 1;
        label = format!("{name} ({number})");
    }
    let spec = if kind == DocumentKind::Repository { without_defaults(spec) } else { spec };
    let mut text = String::new();
    let fields = [("kind", json!(kind.name())), ("name", json!(label)), ("spec", Value::Object(spec))];
    for (field, value) in fields {
        // Not one object, because the fields of an object may be written in another order.
        text.push_str(&yaml::document(&Map::from_iter([(field.to_owned(), value)])));
    }
    text
}

/// Removes the settings that have the default of this version. The defaults of settings that only a
/// plugin declares are not known here.
fn without_defaults(mut spec: Map<String, Value>) -> Map<String, Value> {
    let defaults = repository_settings::effective("{}", false, None);
    if let Some(settings) = spec.get_mut("settings").and_then(Value::as_object_mut) {
        settings.retain(|name, value| defaults.get(name) != Some(value));
    }
    spec
}

fn write(folder: &Path, files: &BTreeMap<DocumentKind, ExportedFile>, overwrite: bool) -> anyhow::Result<()> {
    let mut existing = String::new();
    for kind in files.keys() {
        let file = folder.join(file_name(*kind));
        if file.exists() {
            write!(existing, " {}", file.display())?;
        }
    }
    ensure!(
        overwrite || existing.is_empty(),
        "nothing was written, because these files exist:{existing} (--overwrite replaces them)"
    );
    // The documents contain no secrets, and their author may share them.
    crate::serve::restore_umask();
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make the folder {}", folder.display()))?;
    for (kind, exported) in files {
        let file = folder.join(file_name(*kind));
        if let Err(error) = std::fs::write(&file, &exported.text) {
            bail!("failed to write {}: {error}", file.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::apply::canonical::canonical;
    use crate::cli::apply::documents::parse;

    fn object(kind: DocumentKind, name: &str, spec: Value) -> CurrentObject {
        CurrentObject {
            kind,
            id: name.to_owned(),
            name: name.to_owned(),
            spec: canonical(kind, spec.as_object().unwrap().clone()),
            has_content: false,
            external: BTreeSet::new(),
        }
    }

    #[test]
    fn exported_documents_are_read_as_the_same_specs() {
        let settings = json!({"offline": false, "metadata_ttl_s": 5, "colour": "red"});
        let publisher = json!({"repository": "libs", "provider": "oidc", "issuer": "https://i.example",
            "claims": {"sub": "x"}, "packages": ["*"], "scope": ["read"]});
        let objects = vec![
            object(
                DocumentKind::Team,
                "t",
                json!({"description": "a: b", "members": ["a@example.com"],
                "external_groups": [], "permissions": {"organization": [], "repositories": [
                    {"repository": "libs", "actions": ["read"], "packages": ["@a/*"]}]}}),
            ),
            object(DocumentKind::TrustedPublisher, "libs by oidc x", publisher.clone()),
            object(DocumentKind::TrustedPublisher, "libs by oidc x", publisher),
            object(
                DocumentKind::Policy,
                "p",
                json!({"component": "c", "settings": {}, "repositories": "*",
                "packages": null, "mode": "paused"}),
            ),
            object(
                DocumentKind::RetentionPolicy,
                "r",
                json!({"repositories": ["libs"], "match": {},
                "delete": {"published_before_days": 3}, "keep": {"newest": 1}, "max_deletes": 5, "mode": "enforced"}),
            ),
            object(
                DocumentKind::Webhook,
                "https://h.example/",
                json!({"events": ["a"], "repositories": "*",
                "state": "active"}),
            ),
            object(
                DocumentKind::Repository,
                "libs",
                json!({"format": "fifth", "kind": "hosted", "settings": settings}),
            ),
        ];
        let files = files(objects.clone());
        assert_eq!(files.len(), 6);
        let text: Vec<&str> = files.values().map(|file| file.text.as_str()).collect();
        let documents = parse("all.yaml", &text.join("---\n")).unwrap();
        assert_eq!(documents.len(), objects.len());
        for document in &documents {
            let name = document.name.trim_end_matches(" (2)");
            let object = objects.iter().find(|object| object.kind == document.kind && object.name == name);
            if document.kind == DocumentKind::Repository {
                assert_eq!(document.spec["settings"], json!({"metadata_ttl_s": 5, "colour": "red"}));
            } else {
                assert_eq!(document.spec, object.unwrap().spec, "{name}");
            }
        }
    }

    #[test]
    fn existing_files_are_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(vec![object(DocumentKind::Team, "t", json!({}))]);
        write(folder.path(), &files, false).unwrap();
        assert!(write(folder.path(), &files, false).unwrap_err().to_string().contains("teams.yaml"));
        write(folder.path(), &files, true).unwrap();
    }
}
