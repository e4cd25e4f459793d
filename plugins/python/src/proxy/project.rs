//! Iterates over an upstream's project: the files that a proxy may offer, and the files that a
//! policy withholds.

use super::page::UpstreamPage;
use super::{listed_version, release};
use crate::index::{Availability, FileVisitor, MetadataFile, ProjectFile, key_of};
use crate::records;
use crate::status::Status;
use packhouse_sdk::{Context, Denied, Entry, Error, Expectation, Failure, Found, Repository, SortedOut};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Number of files that are judged together.
const CHUNK: usize = 1_000;

/// A project of an upstream.
pub(crate) struct UpstreamProject<'a> {
    cx: &'a Context,
    pub(crate) proxy: &'a Repository,
    name: &'a str,
    page: Found<UpstreamPage>,
}

impl<'a> UpstreamProject<'a> {
    /// Fetches the page of a project.
    pub(crate) fn open(cx: &'a Context, proxy: &'a Repository, name: &'a str) -> Result<Self, Failure> {
        Ok(Self { cx, proxy, name, page: UpstreamPage::find(cx, proxy, name)? })
    }

    /// Returns the size of the page in bytes, or 0 if there is no page.
    pub(crate) fn size(&self) -> u64 {
        self.page.as_ref().there().map_or(0, |page| page.size)
    }

    /// Returns the project's status, or `None` if there is no page.
    pub(crate) fn status(&self) -> Option<&Status> {
        self.page.as_ref().there().map(|page| &page.status)
    }

    /// Passes the page's files to `take`, in the order of the page. Then passes the fetched files
    /// that the page no longer lists and that the proxy may still offer. Returns false if the
    /// upstream refuses the request, or if it has no page and no file was passed.
    pub(crate) fn each(&self, take: &mut FileVisitor<'_>) -> Result<bool, Failure> {
        if matches!(self.page, Found::Refused) {
            return Ok(false);
        }
        let mut fetched = FetchedFiles::read(self.proxy, self.name)?;
        let mut chunk = Vec::new();
        if let Found::There(page) = &self.page {
            page.each(self.cx, self.name, &mut |file| {
                fetched.record(&file);
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
                take(file, Availability::Offered)?;
                is_found = true;
            }
        }
        Ok(is_found)
    }

    fn judge(&self, files: Vec<ProjectFile>, take: &mut FileVisitor<'_>) -> Result<(), Failure> {
        let SortedOut { offered, denied } =
            self.proxy.sorted_out(self.name, files, |file| release(file, false))?;
        offered.into_iter().try_for_each(|file| take(file, Availability::Offered))?;
        denied.into_iter().try_for_each(|denied| take(as_yanked(denied), Availability::Denied))
    }
}

/// Marks a withheld file as yanked. Installers skip yanked files and display the reason. If a user
/// requires the exact version, the installer requests the file, and the host refuses the request
/// with the policy's text. The host would refuse the file's companions too, so the page does not
/// announce them.
fn as_yanked(denied: Denied<ProjectFile>) -> ProjectFile {
    let Denied { one, because } = denied;
    ProjectFile {
        yanked: Some(because),
        metadata: MetadataFile::Absent,
        signature: false,
        provenance: false,
        ..one
    }
}

/// The fetched files of a project, and which of them the upstream's page lists.
struct FetchedFiles {
    files: BTreeMap<String, FetchedFile>,
    /// Keys of the files' versions.
    versions: BTreeSet<String>,
    /// The subset of `versions` that has a file in the page.
    listed_versions: BTreeSet<String>,
    /// The version of the previous file in the page. Files of one version are usually adjacent, so
    /// the version's key is rarely computed twice.
    last: String,
}

/// The state of a file that was fetched.
struct FetchedFile {
    is_withdrawn: bool,
    is_listed: bool,
}

impl FetchedFiles {
    fn read(proxy: &Repository, name: &str) -> Result<Self, Error> {
        let (mut files, mut versions) = (BTreeMap::new(), BTreeSet::new());
        for entry in proxy.scan(records::files(name)) {
            let Entry { value: ProjectFile { filename, version, withdrawn, .. }, .. } =
                entry?.json::<ProjectFile>()?;
            versions.insert(key_of(&version));
            files.insert(filename, FetchedFile { is_withdrawn: withdrawn, is_listed: false });
        }
        Ok(Self { files, versions, listed_versions: BTreeSet::new(), last: String::new() })
    }

    /// Records that the page lists this file.
    fn record(&mut self, file: &ProjectFile) {
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

    /// Returns the names of fetched files that the page does not list, or that are recorded as
    /// withdrawn.
    fn gone(&self) -> Vec<String> {
        let changed = |known: &FetchedFile| !known.is_listed || known.is_withdrawn;
        self.files.iter().filter(|(_, known)| changed(known)).map(|(filename, _)| filename.clone()).collect()
    }

    /// Marks a file's record as withdrawn if the page does not list the file, and removes the mark
    /// if it does. Returns the file if it is withdrawn.
    fn withdraw(
        &self,
        proxy: &Repository,
        name: &str,
        filename: &str,
    ) -> Result<Option<ProjectFile>, Failure> {
        let withdrawn = self.files.get(filename).is_some_and(|known| !known.is_listed);
        let Some(entry) = proxy.get_json::<ProjectFile>(&records::file(name, filename))? else {
            return Ok(None);
        };
        let file = entry.value;
        if withdrawn != file.withdrawn {
            let changed = ProjectFile { withdrawn, ..file.clone() };
            let mut change = proxy.begin()?;
            change.put_json(&entry.key, &changed, Expectation::Revision(entry.revision), &[])?;
            let is_version_there = self.listed_versions.contains(&key_of(&file.version));
            change.show(&listed_version(name, &file).state(if is_version_there { "" } else { "withdrawn" }));
            // If the commit is stale, a concurrent request has recorded the same.
            let _stale_if_already_recorded = change.commit()?;
        }
        Ok(withdrawn.then_some(file))
    }
}
