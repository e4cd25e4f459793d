//! Repository as a plugin uses it: an ordered map of small records, and blobs.

use crate::host::HostRepository;
use crate::{
    Advisory, Blob, Denied, Digest, Entry, Error, Login, Matches, PublicKey, ReasonedVerdict, Release,
    ReleaseVerdict, Signature, SortedOut, Transaction, Upload,
};
use serde::de::DeserializeOwned;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of releases that the SDK passes to the host in one call.
const RELEASES: usize = 10_000;
/// Number of packages whose advisories the SDK requests in one call.
const ADVISED_PACKAGES: usize = 200;
/// Number of names that the SDK passes to the host in one call, and the limit of their bytes.
const NAMES: usize = 10_000;
const NAMES_BYTES: usize = 1 << 20;

/// Repository of the call. `keep`, `begin` and `begin_upload` fail with [`Error::Denied`] unless
/// the intent allows writing and this is the target. A read may also change the records of a proxy,
/// because they cache its upstream.
pub struct Repository {
    host: Box<dyn HostRepository>,
    kind: OnceCell<String>,
}

impl Repository {
    /// Wraps the host's handle.
    pub fn new(host: Box<dyn HostRepository>) -> Self {
        Self { host, kind: OnceCell::new() }
    }

    pub(crate) fn host(&self) -> &dyn HostRepository {
        &*self.host
    }

    /// Returns the name as in addresses.
    pub fn name(&self) -> String {
        self.host.name()
    }

    /// Returns `hosted`, `proxy` or `group`.
    pub fn kind(&self) -> String {
        self.kind.get_or_init(|| self.host.kind()).clone()
    }

    fn is_of_kind(&self, kind: &str) -> bool {
        self.kind.get_or_init(|| self.host.kind()) == kind
    }

    /// True if the contents of the repository come from an upstream.
    pub fn is_proxy(&self) -> bool {
        self.is_of_kind("proxy")
    }

    /// True if the repository combines the contents of its members.
    pub fn is_group(&self) -> bool {
        self.is_of_kind("group")
    }

    /// True if the repository holds the packages that clients publish to it.
    pub fn is_hosted(&self) -> bool {
        self.is_of_kind("hosted")
    }

    /// Returns the settings of the repository for this format, with all defaults filled in; a
    /// proxy's settings include its `upstream` address. [`Settings`](crate::Settings) has the
    /// settings that exist in every format.
    ///
    /// # Errors
    /// [`Error::Other`] if the settings do not have this type.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(serde_json::from_str(&self.host.settings())?)
    }

    /// Returns the record with this key. Each read sees the latest commit; several reads are not a
    /// consistent snapshot.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid key.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        self.host.get(key)
    }

    /// Returns the record with this key and parses it as JSON.
    ///
    /// # Errors
    /// [`Error::Other`] if the value is not a JSON document of this type.
    pub fn get_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<Entry<T>>, Error> {
        self.host.get(key)?.map(Entry::json).transpose()
    }

    /// Iterates over the records whose key begins with `prefix`, in the byte order of the keys.
    /// Records are read in pages.
    pub fn scan(&self, prefix: impl Into<String>) -> Scan<'_> {
        Scan(Pages::new(self, prefix.into(), 1_000))
    }

    /// Iterates over the keys that begin with `prefix`, in byte order. Keys are read in pages.
    pub fn keys(&self, prefix: impl Into<String>) -> Keys<'_> {
        let pages = Pages { ends_short: true, ..Pages::new(self, prefix.into(), 10_000) };
        Keys { pages, delimiter: None }
    }

    /// Searches the listed packages whose name, summary or property `keywords` contain every word
    /// of `text`. Returns at most 250 names, the best match first. An empty `text` matches all
    /// packages, in the order of their names.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn search(&self, text: &str, offset: u32, limit: u32) -> Result<Matches, Error> {
        self.host.search(text, offset, limit)
    }

    /// Returns the names that the plugin must neither request from an upstream nor list from an
    /// upstream. These are claimed names, and names that hosted members of the group hold, even
    /// members that the caller must not read. Call this for requests about many packages. The host
    /// has already checked a package that the intent [names](crate::Intent::about_package).
    ///
    /// # Errors
    /// Returns the host's error.
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

    /// Returns the advisories about these packages, for all of their versions. Names are spelled as
    /// in [`Version::name`](crate::Version::name). Packages without advisories are left out.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the advisories of 200 packages exceed the host's limit for one
    /// result.
    pub fn advisories(&self, packages: &[String]) -> Result<BTreeMap<String, Vec<Advisory>>, Error> {
        let mut found = BTreeMap::new();
        for some in packages.chunks(ADVISED_PACKAGES) {
            let page: BTreeMap<String, Vec<Advisory>> = serde_json::from_str(&self.host.advisories(some)?)?;
            found.extend(page);
        }
        Ok(found)
    }

    /// Returns the releases that this proxy may offer, in their order. `package` is spelled as in
    /// [`Version::name`](crate::Version::name). `release` returns the facts about an item, above
    /// all its version. The host checks the age, withdrawal and everything else that it knows about
    /// the version. The same rules apply to lists and to fetches.
    ///
    /// # Errors
    /// [`Error::Denied`] if this is not a proxy; [`Error::Invalid`] for a name, a version or a
    /// licence of more than 1,024 bytes.
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

    /// Returns the offered releases like [`offered`](Self::offered), and the releases that policies
    /// withhold, with the reasons. Use this for lists that can mark a withheld version, so that
    /// clients skip it and report the reason.
    ///
    /// # Errors
    /// Fails like [`offered`](Self::offered).
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

    /// Returns the verdict on the one release that a request is about, by the rules of
    /// [`offered`](Self::offered). If a policy withholds the release, answer 404 as for a missing
    /// release: the host replaces that 404 by a response with the reason.
    ///
    /// # Errors
    /// Fails like [`offered`](Self::offered).
    pub fn judge_asked(&self, package: &str, release: &Release) -> Result<ReleaseVerdict, Error> {
        self.host.judge_asked(package, release)
    }

    /// Returns the verdict on each of these releases of a package, by the rules of
    /// [`offered`](Self::offered).
    ///
    /// # Errors
    /// Fails like [`offered`](Self::offered).
    pub fn judge_releases(&self, package: &str, releases: &[Release]) -> Result<Vec<ReleaseVerdict>, Error> {
        let mut verdicts = Vec::with_capacity(releases.len());
        for page in releases.chunks(RELEASES) {
            verdicts.extend(self.host.judge_releases(package, page)?);
        }
        Ok(verdicts)
    }

    /// Returns the verdict on one release of a package, by the rules of [`offered`](Self::offered).
    ///
    /// # Errors
    /// Fails like [`offered`](Self::offered).
    pub fn judge_release(&self, package: &str, release: Release) -> Result<ReleaseVerdict, Error> {
        let verdict = self.host.judge_releases(package, &[release])?.into_iter().next();
        verdict.ok_or_else(|| Error::Other("the host gave no verdict".to_owned()))
    }

    /// True if this proxy offers releases of this package only after a minimum age.
    ///
    /// # Errors
    /// Fails like [`offered`](Self::offered).
    pub fn needs_age(&self, package: &str) -> Result<bool, Error> {
        Ok(self.judge_release(package, Release::default())? != ReleaseVerdict::Offered)
    }

    /// Begins a change to this repository.
    ///
    /// # Errors
    /// [`Error::Denied`] if this call must not write to the repository.
    pub fn begin(&self) -> Result<Transaction, Error> {
        self.host.begin().map(Transaction::new)
    }

    /// Returns the blob with this SHA-256 if the repository holds it. The look-up renews the grace
    /// period of the blob.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a digest of another algorithm.
    pub fn blob(&self, digest: &Digest) -> Result<Option<Blob>, Error> {
        Ok(self.host.blob(digest)?.map(Blob::new))
    }

    /// Returns a blob that a record of this repository names.
    ///
    /// # Errors
    /// [`Error::Other`] if the repository does not hold the blob: the record is wrong.
    pub fn recorded_blob(&self, digest: &Digest) -> Result<Blob, Error> {
        let missing = || Error::Other(format!("a record names {digest}, which the repository does not hold"));
        self.blob(digest)?.ok_or_else(missing)
    }

    /// Keeps this blob in the repository for the grace period, so that a commit may name it.
    /// Returns the SHA-256 of the blob.
    ///
    /// # Errors
    /// [`Error::Denied`] if this call must not write to the repository.
    pub fn keep(&self, blob: &Blob) -> Result<Digest, Error> {
        self.host.keep(blob.host())
    }

    /// Begins an upload and returns its name: 32 characters of lower-case hex. `note` has at most 4
    /// KiB.
    ///
    /// # Errors
    /// [`Error::Denied`] if this call must not write to the repository; [`Error::Invalid`] for a
    /// longer note.
    pub fn begin_upload(&self, note: &str) -> Result<String, Error> {
        self.host.begin_upload(note)
    }

    /// Returns the upload of this name that was begun in this repository.
    ///
    /// # Errors
    /// Returns the host's error.
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

/// State of a paged listing: items that were read but not yet returned, and the key after which the
/// next page begins.
struct Pages<'a, T> {
    repository: &'a Repository,
    prefix: String,
    after: Option<String>,
    limit: u32,
    read: VecDeque<T>,
    ended: bool,
    /// True if a page that is not full is the last page of the listing.
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

    /// Returns the next item; reads a page if none is left. Returns `None` after the end or an
    /// error.
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

/// Iterator over records, from [`Repository::scan`]. The iterator ends after an error.
pub struct Scan<'a>(Pages<'a, Entry>);

impl Scan<'_> {
    /// Starts after this key, which need not exist.
    pub fn after(mut self, key: impl Into<String>) -> Self {
        self.0.after = Some(key.into());
        self
    }

    /// Sets the page size, at most 1,000. Use a small page to read only the first records.
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

/// Iterator over keys, from [`Repository::keys`]. The iterator ends after an error.
pub struct Keys<'a> {
    pages: Pages<'a, String>,
    delimiter: Option<String>,
}

impl Keys<'_> {
    /// Starts after this key, which need not exist. With a delimiter, `key` is a cut key.
    pub fn after(mut self, key: impl Into<String>) -> Self {
        self.pages.after = Some(key.into());
        self
    }

    /// Cuts each key after the first `delimiter` beyond the prefix, and returns equal keys once:
    /// one level of a tree. The delimiter is one byte.
    pub fn delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }

    /// Sets the page size, at most 10,000. Use a small page to read only the first keys.
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
