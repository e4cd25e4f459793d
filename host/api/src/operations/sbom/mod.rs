//! What repositories hold as a document of one of the usual forms, a package at a time: however much it is, no more than one package is in
//! memory, and two bytes of each version before it.

mod cyclonedx;
mod spdx;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{Stream, try_unfold};
use packhouse_advisories::purl::PurlType;
use packhouse_app::App;
use packhouse_store::RepositoryRow;

use super::{Actor, organization, repositories};
use crate::error::ApiError;

/// Packages whose names are read at once.
const NAMES: u32 = 200;
/// Repositories that are read at once.
const REPOSITORIES: u32 = 200;
/// Versions whose relations are written at once.
const RELATIONS: usize = 1_000;
/// Files of one version that are listed.
const FILES: usize = 1_000;

/// How a document is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// CycloneDX 1.6.
    CycloneDx,
    /// SPDX 2.3.
    Spdx,
}

/// What an author states of the licence.
enum Licence<'a> {
    /// An expression of SPDX.
    Expression(&'a str),
    /// Any other text.
    Text(&'a str),
}

impl Licence<'_> {
    fn of(text: &str) -> Licence<'_> {
        match ::spdx::Expression::parse(text) {
            Ok(_) => Licence::Expression(text),
            Err(_) => Licence::Text(text),
        }
    }
}

/// A document that is being written.
struct Writing {
    app: Arc<App>,
    form: Form,
    state: State,
    /// Those that are still to be written, the current one first.
    left: VecDeque<RepositoryRow>,
    names: VecDeque<String>,
    /// The last name that was read of the current repository; none before the first.
    after: String,
    /// Of each version that is written, how many files are written apart from it.
    written: Vec<u16>,
}

enum State {
    Head(String),
    Body,
    /// What the versions are to each other is written from this one on.
    Relations(usize),
    End,
}

/// The document of the repository of this id, or of all that the actor may read, in this form. 404 and 403 as for any reading of a
/// repository.
pub async fn document(
    actor: &Actor,
    repository: Option<&str>,
    form: Form,
) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + use<>, ApiError> {
    let left = match repository {
        Some(id) => VecDeque::from([repositories::readable(actor, id).await?]),
        None => all(actor).await?,
    };
    let name = match left.front().filter(|_| repository.is_some()) {
        Some(row) => row.name.clone(),
        None => organization::show(actor).await?.row.name,
    };
    let state = State::Head(match form {
        Form::CycloneDx => cyclonedx::head(&name, actor.now),
        Form::Spdx => spdx::head(&name, &actor.app.api_url(), actor.now),
    });
    let app = Arc::clone(&actor.app);
    let (names, after, written) = (VecDeque::new(), String::new(), Vec::new());
    Ok(try_unfold(Writing { app, form, state, left, names, after, written }, |mut writing| async move {
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

impl Writing {
    /// The next piece; none behind the last.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        match std::mem::replace(&mut self.state, State::Body) {
            State::Head(head) => return Ok(Some(Bytes::from(head))),
            State::End => return Ok(None),
            State::Relations(from) => return Ok(Some(self.relations(from))),
            State::Body => {}
        }
        loop {
            let Some(repository) = self.left.front().cloned() else {
                return Ok(Some(self.end_of_versions()));
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
            if !self.written.is_empty() {
                text.push(',');
            }
            let apart = match self.form {
                Form::CycloneDx => {
                    text.push_str(&cyclonedx::component(repository, purl_type, version).to_string());
                    0
                }
                Form::Spdx => spdx::packages(&mut text, self.written.len(), repository, purl_type, &version),
            };
            self.written.push(apart);
        }
        Ok(text)
    }

    fn end_of_versions(&mut self) -> Bytes {
        match self.form {
            Form::CycloneDx => {
                self.state = State::End;
                Bytes::from_static(b"]}")
            }
            Form::Spdx => {
                self.state = State::Relations(0);
                Bytes::from_static(spdx::BETWEEN)
            }
        }
    }

    /// A thousand versions' relations, or the document's end.
    fn relations(&mut self, from: usize) -> Bytes {
        let Some(some) = self.written.get(from..).filter(|left| !left.is_empty()) else {
            self.state = State::End;
            return Bytes::from_static(b"]}");
        };
        let some = some.get(..RELATIONS).unwrap_or(some);
        self.state = State::Relations(from + some.len());
        Bytes::from(spdx::relations(from, some))
    }
}
