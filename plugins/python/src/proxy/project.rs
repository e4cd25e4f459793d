//! What an upstream has of a project, as far as it may be offered, handed over one file after the other.

use super::page::Page;
use super::{release, shown};
use crate::index::{File, Metadata, Standing, Take, key_of};
use crate::records;
use crate::status::Status;
use packhouse_sdk::{Context, Denied, Entry, Error, Expectation, Failure, Found, Repository, SortedOut};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Files that are judged at one time.
const CHUNK: usize = 1_000;

/// A project of an upstream's.
pub(crate) struct UpstreamProject<'a> {
    cx: &'a Context,
    pub(crate) proxy: &'a Repository,
    name: &'a str,
    page: Found<Page>,
}

impl<'a> UpstreamProject<'a> {
    /// Asks for the page of a project.
    pub(crate) fn open(cx: &'a Context, proxy: &'a Repository, name: &'a str) -> Result<Self, Failure> {
        Ok(Self { cx, proxy, name, page: Page::find(cx, proxy, name)? })
    }

    /// Bytes of its page; 0 without one.
    pub(crate) fn size(&self) -> u64 {
        self.page.as_ref().there().map_or(0, |page| page.size)
    }

    /// Its status, where there is a page.
    pub(crate) fn status(&self) -> Option<&Status> {
        self.page.as_ref().there().map(|page| &page.status)
    }

    /// Hands over what is in the page, in its order, and what was fetched and has gone from it. False where there is neither,
    /// and where the upstream refuses to say.
    pub(crate) fn each(&self, take: &mut Take<'_>) -> Result<bool, Failure> {
        if matches!(self.page, Found::Refused) {
            return Ok(false);
        }
        let mut fetched = Fetched::read(self.proxy, self.name)?;
        let mut chunk = Vec::new();
        if let Found::There(page) = &self.page {
            page.each(self.cx, self.name, &mut |file| {
                fetched.note(&file);
                chunk.push(file);
                if chunk.len() == CHUNK {
                    self.judge(std::mem::take(&mut chunk), take)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        self.judge(chunk, take)?;
        let mut is_found = matches!(self.page, Found::There(_));
        for filename in fetched.gone() {
            let Some(file) = fetched.withdraw(self.proxy, self.name, &filename)? else { continue };
            for file in self.proxy.offered(self.name, vec![file], |file| release(file, true))? {
                take(file, Standing::Offered)?;
                is_found = true;
            }
        }
        Ok(is_found)
    }

    fn judge(&self, files: Vec<File>, take: &mut Take<'_>) -> Result<(), Failure> {
        let SortedOut { offered, denied } =
            self.proxy.sorted_out(self.name, files, |file| release(file, false))?;
        offered.into_iter().try_for_each(|file| take(file, Standing::Offered))?;
        denied.into_iter().try_for_each(|denied| take(marked(denied), Standing::Denied))
    }
}

/// A file that a policy withholds, as it may stand in a list: an installer passes what is yanked by, and tells the reason. Where exactly its
/// version is wanted the file is asked for, and refused in the policy's words; so nothing else of it is announced.
fn marked(denied: Denied<File>) -> File {
    let Denied { one, because } = denied;
    File { yanked: Some(because), metadata: Metadata::Absent, signature: false, provenance: false, ..one }
}

/// The files of a project that were fetched, and which of them the upstream's page has.
struct Fetched {
    files: BTreeMap<String, Known>,
    /// The keys of their versions, and those of them that the page has.
    versions: BTreeSet<String>,
    listed_versions: BTreeSet<String>,
    /// The version that was noted last: files of one version mostly stand together.
    last: String,
}

/// What is known of a file that was fetched.
struct Known {
    is_withdrawn: bool,
    is_listed: bool,
}

impl Fetched {
    fn read(proxy: &Repository, name: &str) -> Result<Self, Error> {
        let (mut files, mut versions) = (BTreeMap::new(), BTreeSet::new());
        for entry in proxy.scan(records::files(name)) {
            let Entry { value: File { filename, version, withdrawn, .. }, .. } = entry?.json::<File>()?;
            versions.insert(key_of(&version));
            files.insert(filename, Known { is_withdrawn: withdrawn, is_listed: false });
        }
        Ok(Self { files, versions, listed_versions: BTreeSet::new(), last: String::new() })
    }

    /// Notes that the page has this file.
    fn note(&mut self, file: &File) {
        if self.files.is_empty() {
            return;
        }
        if let Some(known) = self.files.get_mut(&file.filename) {
            known.is_listed = true;
        }
        if self.last != file.version {
            self.last.clone_from(&file.version);
            let key = key_of(&file.version);
            if self.versions.contains(&key) {
                self.listed_versions.insert(key);
            }
        }
    }

    /// What the page has no longer, or has again.
    fn gone(&self) -> Vec<String> {
        let changed = |known: &Known| !known.is_listed || known.is_withdrawn;
        self.files.iter().filter(|(_, known)| changed(known)).map(|(filename, _)| filename.clone()).collect()
    }

    /// Notes with its record whether a file is gone; answers it where it is.
    fn withdraw(&self, proxy: &Repository, name: &str, filename: &str) -> Result<Option<File>, Failure> {
        let withdrawn = self.files.get(filename).is_some_and(|known| !known.is_listed);
        let Some(entry) = proxy.get_json::<File>(&records::file(name, filename))? else { return Ok(None) };
        let file = entry.value;
        if withdrawn != file.withdrawn {
            let changed = File { withdrawn, ..file.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            let is_version_there = self.listed_versions.contains(&key_of(&file.version));
            change.show(&shown(name, &file).state(if is_version_there { "" } else { "withdrawn" }));
            // Whoever else notes it at the same time has noted the same.
            let _stale_is_noted_already = change.commit()?;
        }
        Ok(withdrawn.then_some(file))
    }
}
