//! A repository as a plugin reaches it: an ordered map of small documents, and blobs.

use crate::host::HostRepository;
use crate::{
    Advisory, Blob, Denied, Digest, Entry, Error, Login, Matches, PublicKey, ReasonedVerdict, Release,
    ReleaseVerdict, Signature, SortedOut, Transaction, Upload,
};
use serde::de::DeserializeOwned;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Releases that the host judges at once: what is known of so many may be handed over in one call.
const RELEASES: usize = 10_000;
/// Packages whose advisories are asked for at once.
const ADVISED: usize = 200;
/// Names that the host is asked for at once, and their bytes.
const NAMES: usize = 10_000;
const NAMES_BYTES: usize = 1 << 20;

/// A repository that the call was handed. `keep`, `begin` and `begin_upload` are [`Error::Denied`] unless the intent was to
/// write, and in all but the target; a proxy's records may be changed while it is read.
pub struct Repository {
    host: Box<dyn HostRepository>,
    kind: OnceCell<String>,
}

impl Repository {
    /// Over the host's handle.
    pub fn new(host: Box<dyn HostRepository>) -> Self {
        Self { host, kind: OnceCell::new() }
    }

    pub(crate) fn host(&self) -> &dyn HostRepository {
        &*self.host
    }

    /// As it stands in addresses.
    pub fn name(&self) -> String {
        self.host.name()
    }

    /// `hosted`, `proxy` or `group`.
    pub fn kind(&self) -> String {
        self.kind.get_or_init(|| self.host.kind()).clone()
    }

    fn is_of_kind(&self, kind: &str) -> bool {
        self.kind.get_or_init(|| self.host.kind()) == kind
    }

    /// Whether its contents come from an upstream.
    pub fn is_proxy(&self) -> bool {
        self.is_of_kind("proxy")
    }

    /// Whether it shows what its members have.
    pub fn is_group(&self) -> bool {
        self.is_of_kind("group")
    }

    /// Whether it holds what was published to it.
    pub fn is_hosted(&self) -> bool {
        self.is_of_kind("hosted")
    }

    /// Its settings for this format, with every default filled in; a proxy's hold its `upstream` address. Those that a repository
    /// of any format has are [`Settings`](crate::Settings).
    ///
    /// # Errors
    /// [`Error::Other`] when they are not such a document.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(serde_json::from_str(&self.host.settings())?)
    }

    /// The record, or none. Each reading sees what is committed then; several are no snapshot.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key that cannot be.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        self.host.get(key)
    }

    /// The record, read as JSON.
    ///
    /// # Errors
    /// [`Error::Other`] when it is not such a document.
    pub fn get_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<Entry<T>>, Error> {
        self.host.get(key)?.map(Entry::json).transpose()
    }

    /// Records whose key begins with `prefix`, in the order of the keys' bytes, a page at a time.
    pub fn scan(&self, prefix: impl Into<String>) -> Scan<'_> {
        Scan(Pages::new(self, prefix.into(), 1_000))
    }

    /// Keys that begin with `prefix`, in the order of their bytes, a page at a time.
    pub fn keys(&self, prefix: impl Into<String>) -> Keys<'_> {
        let pages = Pages { ends_short: true, ..Pages::new(self, prefix.into(), 10_000) };
        Keys { pages, delimiter: None }
    }

    /// Packages among what is shown whose name, summary or property `keywords` hold every word of `text`, the best match first, at
    /// most 250; all of them by name when it is empty.
    ///
    /// # Errors
    /// The host's.
    pub fn search(&self, text: &str, offset: u32, limit: u32) -> Result<Matches, Error> {
        self.host.search(text, offset, limit)
    }

    /// Of these packages those that no upstream may be asked for, and none of an upstream's is shown as: what the hosted members
    /// of a group hold, whether the caller may read them or not, and what is claimed. For what is about many packages; one that
    /// the intent [names](crate::Intent::about_package) the host has judged already.
    ///
    /// # Errors
    /// The host's.
    pub fn withheld(&self, names: &[String]) -> Result<BTreeSet<String>, Error> {
        let mut found = BTreeSet::new();
        let (mut start, mut bytes) = (0, 0);
        for (at, name) in names.iter().enumerate() {
            let full = at - start == NAMES || bytes + name.len() > NAMES_BYTES;
            if full && at > start {
                found.extend(self.host.withheld(names.get(start..at).unwrap_or_default())?);
                (start, bytes) = (at, 0);
            }
            bytes += name.len();
        }
        if start < names.len() {
            found.extend(self.host.withheld(names.get(start..).unwrap_or_default())?);
        }
        Ok(found)
    }

    /// What is known to be wrong with these packages, spelt as in [`Version::name`](crate::Version::name), whichever of their versions it
    /// is about. Packages of which nothing is known are left out.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where more is known than the host tells at once.
    pub fn advisories(&self, packages: &[String]) -> Result<BTreeMap<String, Vec<Advisory>>, Error> {
        let mut found = BTreeMap::new();
        for some in packages.chunks(ADVISED) {
            let told: BTreeMap<String, Vec<Advisory>> = serde_json::from_str(&self.host.advisories(some)?)?;
            found.extend(told);
        }
        Ok(found)
    }

    /// Those of these that this proxy may offer of a package, spelt as in [`Version::name`](crate::Version::name), in their order;
    /// `release` says what is known of each, its version above all. The host judges age, withdrawal and what else it knows of that
    /// version, for lists as for what is fetched.
    ///
    /// # Errors
    /// [`Error::Denied`] where this is no proxy; [`Error::Invalid`] for a name, a version or a licence of more than 1,024 bytes.
    pub fn offered<T>(
        &self,
        package: &str,
        all: Vec<T>,
        release: impl Fn(&T) -> Release,
    ) -> Result<Vec<T>, Error> {
        let verdicts = self.judge_releases(package, &all.iter().map(release).collect::<Vec<_>>())?;
        let judged = all.into_iter().zip(verdicts);
        Ok(judged.filter(|(_, verdict)| *verdict == ReleaseVerdict::Offered).map(|(one, _)| one).collect())
    }

    /// As [`offered`](Self::offered), with those that policies withhold and why: for a list in which a client passes by what is marked, and
    /// says so.
    ///
    /// # Errors
    /// Those of [`offered`](Self::offered).
    pub fn sorted_out<T>(
        &self,
        package: &str,
        all: Vec<T>,
        release: impl Fn(&T) -> Release,
    ) -> Result<SortedOut<T>, Error> {
        let releases: Vec<Release> = all.iter().map(release).collect();
        let mut verdicts = Vec::with_capacity(releases.len());
        for page in releases.chunks(RELEASES) {
            verdicts.extend(self.host.judge_with_reasons(package, page)?);
        }
        let mut sorted = SortedOut { offered: Vec::new(), denied: Vec::new() };
        for (one, ReasonedVerdict { verdict, because }) in all.into_iter().zip(verdicts) {
            match because {
                _ if verdict == ReleaseVerdict::Offered => sorted.offered.push(one),
                Some(because) => sorted.denied.push(Denied { one, because }),
                None => {}
            }
        }
        Ok(sorted)
    }

    /// What becomes of the one release that a request is about, as [`offered`](Self::offered) has it. Where a policy withholds it, answer as
    /// for what is not there: the host replaces a 404 by its own words, which say why.
    ///
    /// # Errors
    /// Those of [`offered`](Self::offered).
    pub fn judge_asked(&self, package: &str, release: &Release) -> Result<ReleaseVerdict, Error> {
        self.host.judge_asked(package, release)
    }

    /// What becomes of each of these releases of a package, as [`offered`](Self::offered) has it.
    ///
    /// # Errors
    /// Those of [`offered`](Self::offered).
    pub fn judge_releases(&self, package: &str, releases: &[Release]) -> Result<Vec<ReleaseVerdict>, Error> {
        let mut verdicts = Vec::with_capacity(releases.len());
        for page in releases.chunks(RELEASES) {
            verdicts.extend(self.host.judge_releases(package, page)?);
        }
        Ok(verdicts)
    }

    /// What becomes of one release of a package, as [`offered`](Self::offered) has it.
    ///
    /// # Errors
    /// Those of [`offered`](Self::offered).
    pub fn judge_release(&self, package: &str, release: Release) -> Result<ReleaseVerdict, Error> {
        let verdict = self.host.judge_releases(package, &[release])?.into_iter().next();
        verdict.ok_or_else(|| Error::Other("the host gave no verdict".to_owned()))
    }

    /// Whether a release of this package must have an age to be offered by this proxy.
    ///
    /// # Errors
    /// Those of [`offered`](Self::offered).
    pub fn needs_age(&self, package: &str) -> Result<bool, Error> {
        Ok(self.judge_release(package, Release::default())? != ReleaseVerdict::Offered)
    }

    /// A change to this repository.
    ///
    /// # Errors
    /// [`Error::Denied`] when it may not be written.
    pub fn begin(&self) -> Result<Transaction, Error> {
        self.host.begin().map(Transaction::new)
    }

    /// A blob that this repository holds, by its SHA-256; else none. Looking for it renews its time of grace.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another algorithm.
    pub fn blob(&self, digest: &Digest) -> Result<Option<Blob>, Error> {
        Ok(self.host.blob(digest)?.map(Blob::new))
    }

    /// The blob that a record of this repository names, and so holds.
    ///
    /// # Errors
    /// [`Error::Other`] where the repository does not hold it: the record is wrong.
    pub fn recorded_blob(&self, digest: &Digest) -> Result<Blob, Error> {
        let missing = || Error::Other(format!("a record names {digest}, which is not held"));
        self.blob(digest)?.ok_or_else(missing)
    }

    /// Holds this blob in this repository for the time of grace, so that a commit may name it. Answers its SHA-256.
    ///
    /// # Errors
    /// [`Error::Denied`] when the repository may not be written.
    pub fn keep(&self, blob: &Blob) -> Result<Digest, Error> {
        self.host.keep(blob.host())
    }

    /// The name of a new upload: 32 characters of lower-case hex. `note` is at most 4 KiB.
    ///
    /// # Errors
    /// [`Error::Denied`] when the repository may not be written; [`Error::Invalid`] for a longer note.
    pub fn begin_upload(&self, note: &str) -> Result<String, Error> {
        self.host.begin_upload(note)
    }

    /// The upload of this name that was begun in this repository, or none.
    ///
    /// # Errors
    /// The host's.
    pub fn upload(&self, name: &str) -> Result<Option<Upload>, Error> {
        Ok(self.host.upload(name)?.map(Upload::new))
    }

    pub(crate) fn begin_login(&self) -> Result<Login, Error> {
        self.host.begin_login()
    }

    pub(crate) fn signing_keys(&self) -> Result<Vec<PublicKey>, Error> {
        self.host.signing_keys()
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Signature, Error> {
        self.host.sign(message)
    }
}

/// Where a listing stands: what was read and not yet given, and after which key it goes on.
struct Pages<'a, T> {
    repository: &'a Repository,
    prefix: String,
    after: Option<String>,
    limit: u32,
    read: VecDeque<T>,
    ended: bool,
    /// Whether a page that is not full is the last.
    ends_short: bool,
}

impl<'a, T> Pages<'a, T> {
    fn new(repository: &'a Repository, prefix: String, limit: u32) -> Self {
        Self {
            repository,
            prefix,
            after: None,
            limit,
            read: VecDeque::new(),
            ended: false,
            ends_short: false,
        }
    }

    /// The next one, asking for a page where none is left. After the end or an error there is nothing more.
    fn next(
        &mut self,
        page: impl FnOnce(&dyn HostRepository, &str, Option<&str>, u32) -> Result<Vec<T>, Error>,
        key: impl FnOnce(&T) -> &str,
    ) -> Option<Result<T, Error>> {
        if self.read.is_empty() && !self.ended {
            match page(self.repository.host(), &self.prefix, self.after.as_deref(), self.limit) {
                Ok(read) => self.read = read.into(),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
            let full = self.read.len() >= usize::try_from(self.limit).unwrap_or(usize::MAX);
            self.ended = self.read.is_empty() || (self.ends_short && !full);
            self.after = self.read.back().map(|last| key(last).to_owned());
        }
        self.read.pop_front().map(Ok)
    }
}

/// An iterator over records, from [`Repository::scan`]. It ends after an error.
pub struct Scan<'a>(Pages<'a, Entry>);

impl Scan<'_> {
    /// Begins after this key, which need not exist.
    pub fn after(mut self, key: impl Into<String>) -> Self {
        self.0.after = Some(key.into());
        self
    }

    /// Asks for so many at once: where only the first few are wanted. At most 1,000.
    pub fn page(mut self, limit: u32) -> Self {
        self.0.limit = limit.clamp(1, 1_000);
        self
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(|host, prefix, after, limit| host.scan(prefix, after, limit), |entry| &entry.key)
    }
}

/// An iterator over keys, from [`Repository::keys`]. It ends after an error.
pub struct Keys<'a> {
    pages: Pages<'a, String>,
    delimiter: Option<String>,
}

impl Keys<'_> {
    /// Begins after this key, which need not exist; with a delimiter, after such a cut key.
    pub fn after(mut self, key: impl Into<String>) -> Self {
        self.pages.after = Some(key.into());
        self
    }

    /// Cuts each key off behind the first `delimiter` beyond the prefix, and gives what then is equal once: one level of a
    /// tree. One byte.
    pub fn delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }

    /// Asks for so many at once: where only the first few are wanted. At most 10,000.
    pub fn page(mut self, limit: u32) -> Self {
        self.pages.limit = limit.clamp(1, 10_000);
        self
    }
}

impl Iterator for Keys<'_> {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let delimiter = self.delimiter.as_deref();
        self.pages
            .next(|host, prefix, after, limit| host.keys(prefix, delimiter, after, limit), String::as_str)
    }
}
