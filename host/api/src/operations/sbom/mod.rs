//! What repositories hold as a document of one of the usual forms, a package at a time: however much it is, no more than one package is in
//! memory, and two bytes of each version before it.

mod cyclonedx;
mod spdx;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{Stream, try_unfold};
use packhouse_advisories::purl::PurlType;
use packhouse_app::App;
use packhouse_store::{Days, RepositoryRow, TokenId, Version};

use super::{Actor, loaded, organization, repositories, tokens};
use crate::error::ApiError;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Packages whose names are read at once.
const NAMES: u32 = 200;
/// Versions that a token fetched and are read at once.
const FETCHED: u32 = 1_000;
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
    packages: VecDeque<Package>,
    /// The last that was read of the current repository; empty before the first.
    after: (String, String),
    /// Whether all of the current repository was read.
    read: bool,
    /// Whose fetches alone are written, and of which days.
    fetched: Option<(TokenId, Days)>,
    /// Of each version that is written, how many files are written apart from it.
    written: Vec<u16>,
}

/// A package whose versions are written.
struct Package {
    name: String,
    /// Those and no others; none: all that are shown.
    versions: Option<BTreeSet<String>>,
}

/// What is to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The repository of this id; none: all that the actor may read.
    pub repository: Option<&'a str>,
    /// What the token of this id fetched, and no more.
    pub fetched: Option<Fetched<'a>>,
}

/// What a token fetched in a time.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<'a> {
    /// Its id.
    pub token: &'a str,
    /// From when, in ms since 1970: the day of it, in UTC, counts as a whole.
    pub since: i64,
    /// To when, in the same way.
    pub until: i64,
}

enum State {
    Head(String),
    Body,
    /// What the versions are to each other is written from this one on.
    Relations(usize),
    End,
}

/// The document of what is wanted, in this form, as far as the actor may read it now. 404 and 403 as for any reading of a repository, and
/// as for any change of a token.
pub async fn document(
    actor: &Actor,
    wanted: Wanted<'_>,
    form: Form,
) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + use<>, ApiError> {
    let Wanted { repository, fetched } = wanted;
    let fetched = match fetched {
        Some(Fetched { token, since, until }) => {
            // A row may tell of more days than are to be remembered.
            let first = actor.now.saturating_sub((actor.app.config.fetch_days - 1).saturating_mul(DAY_MS));
            Some((tokens::managed(actor, token).await?, Days::between(since.max(first), until)))
        }
        None => None,
    };
    let left = match repository {
        Some(id) => VecDeque::from([repositories::readable(actor, id).await?]),
        None => all(actor).await?,
    };
    let name = match left.front().filter(|_| repository.is_some()) {
        Some(row) => row.name.clone(),
        None => organization::show(actor).await?.row.name,
    };
    let name = match &fetched {
        Some((token, _)) => format!("{name}, fetched by {}", token.name),
        None => name,
    };
    let fetched = fetched.map(|(token, days)| (token.id, days));
    let state = State::Head(match form {
        Form::CycloneDx => cyclonedx::head(&name, actor.now),
        Form::Spdx => spdx::head(&name, &actor.api_url(), actor.now),
    });
    let app = Arc::clone(&actor.app);
    let (packages, after, written) = (VecDeque::new(), Default::default(), Vec::new());
    let writing = Writing { app, form, state, left, packages, after, read: false, fetched, written };
    Ok(try_unfold(
        writing,
        |mut writing| async move { Ok(writing.next().await?.map(|bytes| (bytes, writing))) },
    ))
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
            if self.packages.is_empty() && self.read {
                (self.after, self.read) = Default::default();
                self.left.pop_front();
                continue;
            }
            if self.packages.is_empty() {
                self.read_on(&repository).await?;
            }
            let Some(package) = self.packages.pop_front() else { continue };
            let text = self.package(&repository, package).await?;
            if !text.is_empty() {
                return Ok(Some(Bytes::from(text)));
            }
        }
    }

    /// Reads on in the current repository.
    async fn read_on(&mut self, repository: &RepositoryRow) -> Result<(), ApiError> {
        let store = &self.app.store;
        let Some((token, days)) = self.fetched else {
            let names = store.package_names(repository.id, &self.after.0, NAMES).await?;
            match names.last() {
                Some(last) => self.after.0.clone_from(last),
                None => self.read = true,
            }
            self.packages.extend(names.into_iter().map(|name| Package { name, versions: None }));
            return Ok(());
        };
        let page = store.fetched_versions(token, repository.id, days, &self.after, FETCHED).await?;
        match page.next {
            Some(last) => self.after = last,
            None => self.read = true,
        }
        for (name, version) in page.versions {
            match self.packages.back_mut().filter(|last| last.name == name) {
                Some(Package { versions: Some(versions), .. }) => drop(versions.insert(version)),
                _ => self.packages.push_back(Package { name, versions: Some(BTreeSet::from([version])) }),
            }
        }
        Ok(())
    }

    /// The versions of a package that are to be written. One that was fetched and is not there any more is known by its number alone.
    async fn versions(&self, repository: &RepositoryRow, package: Package) -> Result<Vec<Version>, ApiError> {
        let shown = self.app.store.versions(repository.id, &package.name).await?;
        let Some(mut fetched) = package.versions else { return Ok(shown) };
        let mut versions: Vec<Version> =
            shown.into_iter().filter(|version| fetched.remove(&version.version)).collect();
        let gone = |version| Version { name: package.name.clone(), version, ..Version::default() };
        versions.extend(fetched.into_iter().map(gone));
        Ok(versions)
    }

    /// The components that are versions of one package, with a comma in front of each but the document's first.
    async fn package(&mut self, repository: &RepositoryRow, package: Package) -> Result<String, ApiError> {
        let plugin = loaded::plugin_of(&self.app, repository)?;
        let purl_type = plugin.as_ref().and_then(|plugin| PurlType::of(plugin.description()));
        let mut text = String::new();
        for version in self.versions(repository, package).await? {
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
