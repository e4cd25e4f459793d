//! What repositories hold as a CycloneDX document, a package at a time: however much it is, no more than one package is in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{Stream, try_unfold};
use packhouse_advisories::purl::{self, PurlType};
use packhouse_advisories::time;
use packhouse_app::App;
use packhouse_store::{RepositoryId, RepositoryRow, Version, VersionFile};
use serde_json::{Value, json};

use super::{Actor, organization, repositories};
use crate::error::ApiError;

/// Packages whose names are read at once.
const NAMES: u32 = 200;
/// Repositories that are read at once.
const REPOSITORIES: u32 = 200;
/// Files of one version that are listed.
const FILES: usize = 1_000;

/// A document that is being written.
struct Writing {
    app: Arc<App>,
    state: State,
    /// Those that are still to be written, the current one first.
    left: VecDeque<RepositoryRow>,
    names: VecDeque<String>,
    /// The last name that was read of the current repository; none before the first.
    after: String,
    any: bool,
}

enum State {
    Head(String),
    Body,
    End,
}

/// The document of the repository of this id, or of all that the actor may read. 404 and 403 as for any reading of a repository.
pub async fn document(
    actor: &Actor,
    repository: Option<&str>,
) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + use<>, ApiError> {
    let left = match repository {
        Some(id) => VecDeque::from([repositories::readable(actor, id).await?]),
        None => all(actor).await?,
    };
    let name = match left.front().filter(|_| repository.is_some()) {
        Some(row) => row.name.clone(),
        None => organization::show(actor).await?.row.name,
    };
    let state = State::Head(head(&name, actor.now));
    let app = Arc::clone(&actor.app);
    let (names, after, any) = (VecDeque::new(), String::new(), false);
    Ok(try_unfold(Writing { app, state, left, names, after, any }, |mut writing| async move {
        Ok(writing.next().await?.map(|bytes| (bytes, writing)))
    }))
}

/// Every repository that the actor may read; groups hold nothing of their own.
async fn all(actor: &Actor) -> Result<VecDeque<RepositoryRow>, ApiError> {
    actor.judged_own();
    let (mut found, mut after) = (VecDeque::new(), None);
    loop {
        let page = actor.app.store.list_repositories(actor.organization(), after, REPOSITORIES).await?;
        let more = page.len() == REPOSITORIES as usize;
        after = page.last().map(|row: &RepositoryRow| row.id);
        let may = |row: &RepositoryRow| actor.permissions().rights(row.id).read || row.public;
        found.extend(page.into_iter().filter(|row| row.kind != "group" && may(row)));
        if !more {
            return Ok(found);
        }
    }
}

fn head(name: &str, now: i64) -> String {
    let tool = json!({"type": "application", "name": "packhouse", "version": env!("CARGO_PKG_VERSION")});
    let metadata = json!({
        "timestamp": time(now), "tools": {"components": [tool]},
        "component": {"type": "platform", "bom-ref": "packhouse", "name": name},
    });
    format!(
        "{{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.6\",\"version\":1,\"metadata\":{metadata},\"components\":["
    )
}

impl Writing {
    /// The next piece; none behind the last.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        match std::mem::replace(&mut self.state, State::Body) {
            State::Head(head) => return Ok(Some(Bytes::from(head))),
            State::End => return Ok(None),
            State::Body => {}
        }
        loop {
            let Some(repository) = self.left.front().cloned() else {
                self.state = State::End;
                return Ok(Some(Bytes::from_static(b"]}")));
            };
            if self.names.is_empty() {
                let names = self.app.store.package_names(repository.id, &self.after, NAMES).await?;
                let Some(last) = names.last() else {
                    self.after.clear();
                    self.left.pop_front();
                    continue;
                };
                self.after.clone_from(last);
                self.names.extend(names);
            }
            let Some(name) = self.names.pop_front() else { continue };
            let text = self.package(&repository, &name).await?;
            if !text.is_empty() {
                return Ok(Some(Bytes::from(text)));
            }
        }
    }

    /// The components that are versions of one package, with a comma in front of each but the document's first.
    async fn package(&mut self, repository: &RepositoryRow, name: &str) -> Result<String, ApiError> {
        let plugin = self.app.runtime.plugin_of(repository.id, &repository.format);
        let purl_type = plugin.as_ref().and_then(|plugin| PurlType::of(plugin.description()));
        let mut text = String::new();
        for version in self.app.store.versions(repository.id, name).await? {
            if self.any {
                text.push(',');
            }
            self.any = true;
            text.push_str(&component(repository, purl_type, version).to_string());
        }
        Ok(text)
    }
}

/// A version as a component.
fn component(repository: &RepositoryRow, purl_type: Option<PurlType<'_>>, version: Version) -> Value {
    let Version { name, version, files, summary, properties, state, published } = version;
    let mut made = json!({
        "type": "library", "bom-ref": reference(repository.id, &name, &version), "name": name, "version": version,
        "properties": [
            {"name": "packhouse:repository", "value": repository.name},
            {"name": "packhouse:format", "value": repository.format},
        ],
    });
    let mut set = |member: &str, value: Value| {
        if let Some(made) = made.as_object_mut() {
            made.insert(member.to_owned(), value);
        }
    };
    if let Some(of) = purl_type {
        set("purl", json!(purl::write(of, &name, &version)));
    }
    if !summary.is_empty() {
        set("description", json!(summary));
    }
    let license = properties.iter().find(|(property, text)| property == "license" && !text.is_empty());
    if let Some((_, license)) = license {
        // A name, since nobody has checked that it is an expression.
        set("licenses", json!([{"license": {"name": license}}]));
    }
    if let [file] = files.as_slice() {
        set("hashes", json!([hash(file)].into_iter().flatten().collect::<Vec<_>>()));
    } else if !files.is_empty() {
        let files: Vec<Value> = files.iter().take(FILES).map(file).collect();
        set("components", json!(files));
    }
    let told = [
        ("state", state),
        ("published_at", published.and_then(|at| i64::try_from(at).ok()).map(time).unwrap_or_default()),
    ];
    if let Some(list) = made.get_mut("properties").and_then(Value::as_array_mut) {
        let told = told.into_iter().filter(|(_, value)| !value.is_empty());
        list.extend(told.map(|(name, value)| json!({"name": format!("packhouse:{name}"), "value": value})));
    }
    made
}

/// What names a component in its document.
fn reference(repository: RepositoryId, name: &str, version: &str) -> String {
    format!("{repository}/{name}@{version}")
}

fn file(file: &VersionFile) -> Value {
    json!({"type": "file", "name": file.path, "hashes": hash(file).into_iter().collect::<Vec<_>>()})
}

fn hash(file: &VersionFile) -> Option<Value> {
    let text = file.digest.to_string();
    let (algorithm, content) = text.split_once(':')?;
    let algorithm = match algorithm {
        "sha256" => "SHA-256",
        "sha512" => "SHA-512",
        "sha1" => "SHA-1",
        "md5" => "MD5",
        _ => return None,
    };
    Some(json!({"alg": algorithm, "content": content}))
}
