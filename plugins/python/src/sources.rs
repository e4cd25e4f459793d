//! A project as one repository or several have it: their files, one after the other.

use crate::index::{File, Project, Standing, Take, in_order, key_of};
use crate::projects;
use crate::proxy::UpstreamProject;
use crate::records::{self, FileRecord, ProjectRecord, VersionRecord};
use crate::status::Status;
use packhouse_sdk::{Context, Error, Failure, LeftOut, Repository};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Bytes of pages, all together, up to which the files in them are put in order here.
const SORTED: u64 = 4 << 20;
/// Files of a hosted member up to which they are.
const SORTED_FILES: usize = 10_000;

/// Those repositories that may have a project.
pub(crate) struct Sources<'a> {
    name: &'a str,
    all: Vec<Source<'a>>,
    left_out: LeftOut<'a>,
}

enum Source<'a> {
    Hosted(&'a Repository, ProjectRecord),
    Proxy(UpstreamProject<'a>),
}

impl<'a> Sources<'a> {
    /// Looks for a project of this normalised name.
    pub(crate) fn open(cx: &'a Context, name: &'a str) -> Result<Self, Failure> {
        let (mut all, mut left_out) = (Vec::new(), cx.left_out());
        for repository in cx.sources()? {
            if repository.is_proxy() {
                let opened = UpstreamProject::open(cx, repository, name).map(Some);
                all.extend(left_out.unless_failed(repository, opened)?.map(Source::Proxy));
            } else if let Some(record) = repository.get_json(&records::project(name))? {
                all.push(Source::Hosted(repository, record.value));
            }
        }
        Ok(Self { name, all, left_out })
    }

    /// The status that the first states that has the project; none where nobody has it.
    pub(crate) fn status(&self) -> Result<Option<Status>, Failure> {
        for source in &self.all {
            if let Some(status) = source.status(self.name)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// The project's name as the first spells it.
    pub(crate) fn display(&self) -> String {
        match self.all.first() {
            Some(Source::Hosted(_, record)) => record.name.clone(),
            _ => self.name.to_owned(),
        }
    }

    /// Hands over all files, of those of one name the first: by version and name, and where they are too many to be held here at one time,
    /// in the order in which the repositories have them. Answers the versions, or none where nobody has the project.
    pub(crate) fn each(
        self,
        take: &mut dyn FnMut(File, Standing) -> Result<(), Failure>,
    ) -> Result<Option<Vec<String>>, Failure> {
        if self.are_large()? { self.each_as_it_comes(take) } else { self.sorted(take) }
    }

    fn are_large(&self) -> Result<bool, Error> {
        let mut size = 0;
        for source in &self.all {
            size += match source {
                Source::Proxy(upstream) => upstream.size(),
                Source::Hosted(repository, _) => {
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
        take: &mut dyn FnMut(File, Standing) -> Result<(), Failure>,
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
            take(file, if is_offered { Standing::Offered } else { Standing::Denied })?;
        }
        Ok(Some(project.versions))
    }

    /// Without holding them: of the names alone it is known which were there.
    fn each_as_it_comes(
        self,
        take: &mut dyn FnMut(File, Standing) -> Result<(), Failure>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let Self { name, all, mut left_out } = self;
        let is_alone = all.len() == 1;
        let (mut names, mut versions) = (HashSet::new(), BTreeSet::new());
        let (mut is_found, mut any_denied) = (false, false);
        // What a policy withholds of one is listed where no other offers it, so all that is offered comes first.
        for pass in [Standing::Offered, Standing::Denied] {
            if pass == Standing::Denied && (is_alone || !any_denied) {
                break;
            }
            for source in &all {
                let answer = source.each(name, &mut |file, standing| {
                    any_denied |= standing == Standing::Denied;
                    let mut is_first = || names.insert(hash_of(&file.filename));
                    if !is_alone && (standing != pass || !is_first()) {
                        return Ok(());
                    }
                    if !versions.contains(&file.version) {
                        versions.insert(file.version.clone());
                    }
                    take(file, standing)
                });
                let answer = answer.map(|is_there| is_there.then_some(()));
                is_found |= left_out.unless_failed(source.repository(), answer)?.is_some();
            }
        }
        let found = left_out.or_failure(is_found.then_some(versions))?;
        Ok(found.map(in_order))
    }
}

/// So that of some hundred thousand names little is held.
fn hash_of(filename: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    filename.hash(&mut hasher);
    hasher.finish()
}

impl Source<'_> {
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

    /// All of it in its order; none where it has no such project.
    fn project(&self, name: &str) -> Result<Option<Project>, Failure> {
        let mut project = Project::default();
        let is_found = self.each(name, &mut |file, standing| {
            let files = match standing {
                Standing::Offered => &mut project.files,
                Standing::Denied => &mut project.denied,
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

    /// Hands over its files; false where it has no such project.
    fn each(&self, name: &str, take: &mut Take<'_>) -> Result<bool, Failure> {
        match self {
            Self::Proxy(upstream) => upstream.each(take),
            Self::Hosted(repository, _) => stored(repository, name, take).map(|()| true),
        }
    }
}

fn stored(repository: &Repository, name: &str, take: &mut Take<'_>) -> Result<(), Failure> {
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
        take(File::of(filename, record, reason), Standing::Offered)?;
    }
    Ok(())
}

fn stored_versions(repository: &Repository, name: &str) -> Result<Vec<String>, Error> {
    let versions = repository.scan(records::versions(name));
    versions.map(|entry| Ok(entry?.json::<VersionRecord>()?.value.version)).collect()
}
