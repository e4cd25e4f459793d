//! Export of repositories as a bill of materials, one package at a time. Memory holds only one
//! package, and two bytes for each version before it.

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
/// Number of package names that are read at once.
const NAMES: u32 = 200;
/// Number of fetched versions that are read at once.
const FETCHED: u32 = 1_000;
/// Number of repositories that are read at once.
const REPOSITORIES: u32 = 200;
/// Number of versions whose relations are written at once.
const RELATIONS: usize = 1_000;
/// Maximum number of listed files of one version.
const FILES: usize = 1_000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SbomFormat {
    /// CycloneDX 1.6.
    CycloneDx,
    /// SPDX 2.3.
    Spdx,
}

/// License, as the author states it.
enum Licence<'a> {
    /// License expression in the SPDX syntax.
    Expression(&'a str),
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

struct SbomWriter {
    app: Arc<App>,
    form: SbomFormat,
    state: WriterState,
    /// Repositories that are still to be written, the current one first.
    left: VecDeque<RepositoryRow>,
    packages: VecDeque<PackageSelection>,
    /// Last package and version that were read from the current repository; empty at first.
    after: (String, String),
    /// True if the current repository was read completely.
    read: bool,
    /// Token and days, if only fetched versions are written.
    fetched: Option<(TokenId, Days)>,
    /// Number of separately written files of each version.
    written: Vec<u16>,
}

struct PackageSelection {
    name: String,
    /// Versions to write; `None` for all listed ones.
    versions: Option<BTreeSet<String>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SbomRequest<'a> {
    /// Id of the repository; `None` for all that the actor may read.
    pub repository: Option<&'a str>,
    /// Limits the document to versions that a token fetched.
    pub fetched: Option<FetchFilter<'a>>,
}

/// Versions that a token fetched in a period.
#[derive(Clone, Copy, Debug)]
pub struct FetchFilter<'a> {
    pub token: &'a str,
    /// Start in ms since 1970; the whole day in UTC counts.
    pub since: i64,
    /// End in ms since 1970; the whole day in UTC counts.
    pub until: i64,
}

enum WriterState {
    Head(String),
    Body,
    /// Relations of the versions from this index on.
    Relations(usize),
    End,
}

/// Returns the requested document, as far as the actor may read it now. 404 and 403 as for reading
/// a repository, and as for changing a token.
pub async fn document(
    actor: &Actor,
    request: SbomRequest<'_>,
    form: SbomFormat,
) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + use<>, ApiError> {
    let SbomRequest { repository, fetched } = request;
    let fetched = match fetched {
        Some(FetchFilter { token, since, until }) => {
            // A row may contain days before the retention period of fetches.
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
    let state = WriterState::Head(match form {
        SbomFormat::CycloneDx => cyclonedx::head(&name, actor.now),
        SbomFormat::Spdx => spdx::head(&name, &actor.api_url(), actor.now),
    });
    let app = Arc::clone(&actor.app);
    let (packages, after, written) = (VecDeque::new(), Default::default(), Vec::new());
    let writing = SbomWriter { app, form, state, left, packages, after, read: false, fetched, written };
    Ok(try_unfold(
        writing,
        |mut writing| async move { Ok(writing.next().await?.map(|bytes| (bytes, writing))) },
    ))
}

/// Returns every repository that the actor may read, except groups, which have no content of their
/// own.
async fn all(actor: &Actor) -> Result<VecDeque<RepositoryRow>, ApiError> {
    actor.judged_own();
    let (mut found, mut after) = (VecDeque::new(), None);
    loop {
        let page = actor.app.store.list_repositories(actor.organization(), after, REPOSITORIES).await?;
        let more = page.len() == REPOSITORIES as usize;
        after = page.last().map(|row: &RepositoryRow| row.id);
        let may = |row: &RepositoryRow| repositories::may_read(actor, row);
        found.extend(page.into_iter().filter(|row| row.kind != "group" && may(row)));
        if !more {
            return Ok(found);
        }
    }
}

impl SbomWriter {
    /// Returns the next piece; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        match std::mem::replace(&mut self.state, WriterState::Body) {
            WriterState::Head(head) => return Ok(Some(Bytes::from(head))),
            WriterState::End => return Ok(None),
            WriterState::Relations(from) => return Ok(Some(self.relations(from))),
            WriterState::Body => {}
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

    /// Reads the next packages of the current repository.
    async fn read_on(&mut self, repository: &RepositoryRow) -> Result<(), ApiError> {
        let store = &self.app.store;
        let Some((token, days)) = self.fetched else {
            let names = store.package_names(repository.id, &self.after.0, NAMES).await?;
            match names.last() {
                Some(last) => self.after.0.clone_from(last),
                None => self.read = true,
            }
            self.packages.extend(names.into_iter().map(|name| PackageSelection { name, versions: None }));
            return Ok(());
        };
        let page = store.fetched_versions(token, repository.id, days, &self.after, FETCHED).await?;
        match page.next {
            Some(last) => self.after = last,
            None => self.read = true,
        }
        for (name, version) in page.versions {
            match self.packages.back_mut().filter(|last| last.name == name) {
                Some(PackageSelection { versions: Some(versions), .. }) => drop(versions.insert(version)),
                _ => self
                    .packages
                    .push_back(PackageSelection { name, versions: Some(BTreeSet::from([version])) }),
            }
        }
        Ok(())
    }

    /// Returns the versions of a package to write. A fetched version that was deleted has only its
    /// number.
    async fn versions(
        &self,
        repository: &RepositoryRow,
        package: PackageSelection,
    ) -> Result<Vec<Version>, ApiError> {
        let listed = self.app.store.versions(repository.id, &package.name).await?;
        let Some(mut fetched) = package.versions else { return Ok(listed) };
        let mut versions: Vec<Version> =
            listed.into_iter().filter(|version| fetched.remove(&version.version)).collect();
        let gone = |version| Version { name: package.name.clone(), version, ..Version::default() };
        versions.extend(fetched.into_iter().map(gone));
        Ok(versions)
    }

    /// Writes the versions of one package as components, with a comma before each except the
    /// document's first.
    async fn package(
        &mut self,
        repository: &RepositoryRow,
        package: PackageSelection,
    ) -> Result<String, ApiError> {
        let plugin = loaded::plugin_of(&self.app, repository)?;
        let purl_type = plugin.as_ref().and_then(|plugin| PurlType::of(plugin.description()));
        let mut text = String::new();
        for version in self.versions(repository, package).await? {
            if !self.written.is_empty() {
                text.push(',');
            }
            let apart = match self.form {
                SbomFormat::CycloneDx => {
                    text.push_str(&cyclonedx::component(repository, purl_type, version).to_string());
                    0
                }
                SbomFormat::Spdx => {
                    spdx::packages(&mut text, self.written.len(), repository, purl_type, &version)
                }
            };
            self.written.push(apart);
        }
        Ok(text)
    }

    fn end_of_versions(&mut self) -> Bytes {
        match self.form {
            SbomFormat::CycloneDx => {
                self.state = WriterState::End;
                Bytes::from_static(b"]}")
            }
            SbomFormat::Spdx => {
                self.state = WriterState::Relations(0);
                Bytes::from_static(spdx::BETWEEN)
            }
        }
    }

    /// Writes the relations of the next versions, or the document's end.
    fn relations(&mut self, from: usize) -> Bytes {
        let Some(some) = self.written.get(from..).filter(|left| !left.is_empty()) else {
            self.state = WriterState::End;
            return Bytes::from_static(b"]}");
        };
        let some = some.get(..RELATIONS).unwrap_or(some);
        self.state = WriterState::Relations(from + some.len());
        Bytes::from(spdx::relations(from, some))
    }
}
