//! Combines the files of a project from one or several repositories.

use crate::index::{Availability, FileVisitor, Project, ProjectFile, in_order, key_of};
use crate::projects;
use crate::proxy::UpstreamProject;
use crate::records::{self, FileRecord, ProjectRecord, VersionRecord};
use crate::status::Status;
use packhouse_sdk::{Context, Error, Failure, LeftOut, Repository};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum bytes of a project's upstream pages together. If they are larger, the plugin does not
/// sort the project's files in memory.
const SORTED: u64 = 4 << 20;
/// Limit for the number of a project's files in a hosted repository. From this number on, the
/// plugin does not sort the project's files in memory.
const SORTED_FILES: usize = 10_000;

/// The repositories that may have a project.
pub(crate) struct Sources<'a> {
    name: &'a str,
    all: Vec<ProjectSource<'a>>,
    left_out: LeftOut<'a>,
}

enum ProjectSource<'a> {
    Hosted(&'a Repository, ProjectRecord),
    Proxy(UpstreamProject<'a>),
}

impl<'a> Sources<'a> {
    /// Looks up a project in all repositories. `name` is normalized.
    pub(crate) fn open(cx: &'a Context, name: &'a str) -> Result<Self, Failure> {
        let (mut all, mut left_out) = (Vec::new(), cx.left_out());
        for repository in cx.sources()? {
            if repository.is_proxy() {
                let opened = UpstreamProject::open(cx, repository, name).map(Some);
                all.extend(left_out.unless_failed(repository, opened)?.map(ProjectSource::Proxy));
            } else if let Some(record) = repository.get_json(&records::project(name))? {
                all.push(ProjectSource::Hosted(repository, record.value));
            }
        }
        Ok(Self { name, all, left_out })
    }

    /// Returns the status from the first repository with the project. `None` if no repository has
    /// the project.
    pub(crate) fn status(&self) -> Result<Option<Status>, Failure> {
        for source in &self.all {
            if let Some(status) = source.status(self.name)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// Returns the project's name in the spelling of the first repository.
    pub(crate) fn display(&self) -> String {
        match self.all.first() {
            Some(ProjectSource::Hosted(_, record)) => record.name.clone(),
            _ => self.name.to_owned(),
        }
    }

    /// Passes all files to `take`, sorted by version and name. If there are too many files to hold
    /// in memory, they keep the order of the repositories. If repositories have files of the same
    /// name, only the first is passed. Returns the versions, or `None` if no repository has the
    /// project.
    pub(crate) fn each(
        self,
        take: &mut dyn FnMut(ProjectFile, Availability) -> Result<(), Failure>,
    ) -> Result<Option<Vec<String>>, Failure> {
        if self.are_large()? { self.each_as_it_comes(take) } else { self.sorted(take) }
    }

    fn are_large(&self) -> Result<bool, Error> {
        let mut size = 0;
        for source in &self.all {
            size += match source {
                ProjectSource::Proxy(upstream) => upstream.size(),
                ProjectSource::Hosted(repository, _) => {
                    let keys = repository.keys(records::files(self.name)).take(SORTED_FILES);
                    let count = keys.collect::<Result<Vec<_>, _>>()?.len();
                    if count == SORTED_FILES { SORTED + 1 } else { 0 }
                }
            };
        }
        Ok(size > SORTED)
    }

    fn sorted(
        self,
        take: &mut dyn FnMut(ProjectFile, Availability) -> Result<(), Failure>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let Self { name, all, mut left_out } = self;
        let mut found: Option<Project> = None;
        for source in &all {
            let project = source.project(name);
            let Some(project) = left_out.unless_failed(source.repository(), project)? else { continue };
            match &mut found {
                Some(found) => found.join(project),
                None => found = Some(project),
            }
        }
        let Some(mut project) = left_out.or_failure(found)? else { return Ok(None) };
        let offered: HashSet<u64> = project.files.iter().map(|file| hash_of(&file.filename)).collect();
        project.list_denied();
        for file in project.files {
            let is_offered = offered.contains(&hash_of(&file.filename));
            take(file, if is_offered { Availability::Offered } else { Availability::Denied })?;
        }
        Ok(Some(project.versions))
    }

    /// Passes files to `take` without holding them in memory. Holds only hashes of their names, to
    /// find duplicates.
    fn each_as_it_comes(
        self,
        take: &mut dyn FnMut(ProjectFile, Availability) -> Result<(), Failure>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let Self { name, all, mut left_out } = self;
        let is_alone = all.len() == 1;
        let (mut names, mut versions) = (HashSet::new(), BTreeSet::new());
        let (mut is_found, mut any_denied) = (false, false);
        // A withheld file is listed only if no repository offers a file of the same name. With
        // several repositories, the first pass therefore takes only offered files, and the second
        // only withheld files. One repository needs a single pass.
        for pass in [Availability::Offered, Availability::Denied] {
            if pass == Availability::Denied && (is_alone || !any_denied) {
                break;
            }
            for source in &all {
                let answer = source.each(name, &mut |file, availability| {
                    any_denied |= availability == Availability::Denied;
                    let mut is_first = || names.insert(hash_of(&file.filename));
                    if !is_alone && (availability != pass || !is_first()) {
                        return Ok(());
                    }
                    if !versions.contains(&file.version) {
                        versions.insert(file.version.clone());
                    }
                    take(file, availability)
                });
                let answer = answer.map(|is_there| is_there.then_some(()));
                is_found |= left_out.unless_failed(source.repository(), answer)?.is_some();
            }
        }
        let found = left_out.or_failure(is_found.then_some(versions))?;
        Ok(found.map(in_order))
    }
}

/// Returns a hash of a file name. A project may have several hundred thousand files, and a hash
/// needs less memory than a name.
fn hash_of(filename: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    filename.hash(&mut hasher);
    hasher.finish()
}

impl ProjectSource<'_> {
    fn repository(&self) -> &Repository {
        match self {
            Self::Hosted(repository, _) => repository,
            Self::Proxy(upstream) => upstream.proxy,
        }
    }

    fn status(&self, name: &str) -> Result<Option<Status>, Error> {
        Ok(match self {
            Self::Hosted(repository, _) => {
                let stated = repository.get_json(&records::status(name))?;
                Some(stated.map(|entry| entry.value).unwrap_or_default())
            }
            Self::Proxy(upstream) => upstream.status().cloned(),
        })
    }

    /// Reads and sorts the whole project. `None` if the repository does not have it.
    fn project(&self, name: &str) -> Result<Option<Project>, Failure> {
        let mut project = Project::default();
        let is_found = self.each(name, &mut |file, availability| {
            let files = match availability {
                Availability::Offered => &mut project.files,
                Availability::Denied => &mut project.denied,
            };
            files.push(file);
            Ok(())
        })?;
        project.versions = match self {
            Self::Hosted(repository, _) => stored_versions(repository, name)?,
            Self::Proxy(_) => project.files.iter().map(|file| file.version.clone()).collect(),
        };
        project.sort();
        project.versions.dedup();
        Ok(is_found.then_some(project))
    }

    /// Passes the repository's files to `take`. Returns false if the repository does not have the
    /// project.
    fn each(&self, name: &str, take: &mut FileVisitor<'_>) -> Result<bool, Failure> {
        match self {
            Self::Proxy(upstream) => upstream.each(take),
            Self::Hosted(repository, _) => stored(repository, name, take).map(|()| true),
        }
    }
}

fn stored(repository: &Repository, name: &str, take: &mut FileVisitor<'_>) -> Result<(), Failure> {
    let yanked = projects::yanked(repository, name)?;
    let prefix = records::files(name);
    for entry in repository.scan(&prefix) {
        let entry = entry?;
        let filename = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        let record = entry.json::<FileRecord>()?.value;
        let reason = match yanked.is_empty() {
            true => None,
            false => yanked.get(&key_of(&record.version)).cloned(),
        };
        take(ProjectFile::of(filename, record, reason), Availability::Offered)?;
    }
    Ok(())
}

fn stored_versions(repository: &Repository, name: &str) -> Result<Vec<String>, Error> {
    let versions = repository.scan(records::versions(name));
    versions.map(|entry| Ok(entry?.json::<VersionRecord>()?.value.version)).collect()
}
