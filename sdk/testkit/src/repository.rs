//! Repositories of the memory host.

use crate::blob::MemoryBlob;
use crate::call::Rights;
use crate::commit::MemoryTransaction;
use crate::pieces::{KeyRange, TrackedRead};
use crate::state::{self, RepositoryState, UploadState};
use crate::upload::MemoryUpload;
use base64::Engine;
use packhouse_names::{ReleaseRules, runs_of_page};
use packhouse_sdk::host::{
    HostBlob, HostMaking, HostPiece, HostRepository, HostRun, HostRuns, HostTransaction, HostUpload,
};
use packhouse_sdk::{
    Digest, Entry, Error, Login, LoginState, Matches, PublicKey, ReasonedVerdict, Release, ReleaseVerdict,
    Signature,
};
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Largest number of open sign-ins.
const LOGINS: usize = 100;
const NOTE: usize = 4 << 10;
const SCAN: u32 = 1_000;
const SCAN_BYTES: usize = 1 << 20;
const KEYS: u32 = 10_000;
const RELEASES: usize = 100_000;
const TEXT_BYTES: usize = 1_024;
const NAMES: usize = 10_000;
const NAMES_BYTES: usize = 1 << 20;

/// Repository as one call may use it.
pub(crate) struct MemoryRepository {
    pub(crate) rights: Rights,
    pub(crate) name: String,
    /// Upload to which the current request added bytes, and the number of these bytes.
    pub(crate) received: Option<(String, u64)>,
}

impl MemoryRepository {
    fn state<T>(&self, read: impl FnOnce(&RepositoryState) -> T) -> T {
        let state = self.rights.host.borrow();
        match state.repositories.get(&self.name) {
            Some(repository) => read(repository),
            None => read(&RepositoryState::default()),
        }
    }

    /// Records that the call read keys: up to and including `last`, or to the end of the prefix.
    fn record_page(&self, prefix: &str, after: Option<&str>, last: Option<&String>) {
        let range = KeyRange { prefix: prefix.to_owned(), from: start(prefix, after), last: last.cloned() };
        let found = self.state(|state| range.of(state));
        self.rights.record_read(&self.name, TrackedRead::Range(range, found));
    }

    /// Returns the time at which each release without a stated time was first judged, by version.
    /// For a release that was not judged before, this is the current time.
    fn first_seen(
        &self,
        package: &str,
        releases: &[Release],
        lacks_time: impl Fn(&Release) -> bool,
    ) -> BTreeMap<String, u64> {
        let now = self.rights.host.borrow().now;
        self.change(|state| {
            let by_file = state.file_dates;
            let counts = |release: &&Release| !by_file && !release.version.is_empty() && lacks_time(release);
            let mut found = BTreeMap::new();
            for Release { version, .. } in releases.iter().filter(counts) {
                let first = state.first_seen.entry((package.to_owned(), version.clone())).or_insert(now);
                found.insert(version.clone(), *first);
            }
            found
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut RepositoryState) -> T) -> T {
        change(self.rights.host.borrow_mut().repositories.entry(self.name.clone()).or_default())
    }
}

/// Returns the start of the keys with this prefix after the key `after`.
fn start(prefix: &str, after: Option<&str>) -> Bound<String> {
    match after {
        Some(after) if after >= prefix => Bound::Excluded(after.to_owned()),
        _ => Bound::Included(prefix.to_owned()),
    }
}

/// Cuts a key after the first delimiter beyond the prefix; the delimiter stays.
fn cut<'a>(key: &'a str, prefix: &str, delimiter: Option<&str>) -> &'a str {
    let rest = key.get(prefix.len()..).unwrap_or_default();
    match delimiter.and_then(|delimiter| rest.find(delimiter)) {
        Some(at) => key.get(..prefix.len() + at + 1).unwrap_or(key),
        None => key,
    }
}

impl HostRepository for MemoryRepository {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn kind(&self) -> String {
        self.state(|state| state.kind.clone())
    }

    fn settings(&self) -> String {
        self.state(|state| state.settings.clone())
    }

    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let revision = self.state(|state| state.records.get(key).map(|record| record.revision));
        self.rights.record_read(&self.name, TrackedRead::Key(key.to_owned(), revision));
        Ok(self.state(|state| {
            let record = state.records.get(key)?;
            Some(Entry { key: key.to_owned(), value: record.value.clone(), revision: record.revision })
        }))
    }

    fn scan(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, Error> {
        let limit = limit.min(SCAN) as usize;
        let (entries, cut) = self.state(|state| {
            let (mut bytes, mut entries) = (0, Vec::new());
            let records = state.records.range((start(prefix, after), Bound::Unbounded));
            for (key, record) in records.take_while(|(key, _)| key.starts_with(prefix)).take(limit) {
                bytes += key.len() + record.value.len();
                // The first record is returned at any size: an empty page would mean the end of the
                // listing.
                if !entries.is_empty() && bytes > SCAN_BYTES {
                    return (entries, true);
                }
                let (value, revision) = (record.value.clone(), record.revision);
                entries.push(Entry { key: key.clone(), value, revision });
            }
            let full = entries.len() == limit;
            (entries, full)
        });
        self.record_page(prefix, after, entries.last().filter(|_| cut).map(|last| &last.key));
        Ok(entries)
    }

    fn keys(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, Error> {
        if delimiter.is_some_and(|delimiter| delimiter.len() != 1) {
            return Err(Error::Invalid("a delimiter is one byte".to_owned()));
        }
        let limit = limit.min(KEYS) as usize;
        let cuts = self.state(|state| {
            let records = state.records.range((start(prefix, after), Bound::Unbounded));
            let keys = records.map(|(key, _)| key).take_while(|key| key.starts_with(prefix));
            let mut cuts: Vec<String> = Vec::new();
            for cut in keys.map(|key| cut(key, prefix, delimiter)) {
                let returned = after == Some(cut) || cuts.last().is_some_and(|last| last == cut);
                if !returned && cuts.len() < limit {
                    cuts.push(cut.to_owned());
                }
            }
            cuts
        });
        // A cut key stands for several keys, so the page depends on all keys to the end of the
        // prefix.
        let last = cuts.last().filter(|_| delimiter.is_none() && cuts.len() == limit);
        self.record_page(prefix, after, last);
        Ok(cuts)
    }

    fn runs(&self, prefix: &str, after: Option<&str>) -> Result<HostRuns, Error> {
        let keys = self.keys(prefix, None, after, KEYS)?;
        let more = keys.len() >= KEYS as usize;
        let runs = runs_of_page(keys.iter().map(String::as_str), more)
            .into_iter()
            .map(|(last, count)| HostRun { last, count })
            .collect();
        Ok(HostRuns { runs, more })
    }

    fn search(&self, text: &str, offset: u32, limit: u32) -> Result<Matches, Error> {
        self.rights.mark_untracked();
        Ok(self.state(|state| state.search(text, offset, limit)))
    }

    fn withheld(&self, names: &[String]) -> Result<Vec<String>, Error> {
        self.rights.mark_untracked();
        let bytes: usize = names.iter().map(String::len).sum();
        if names.len() > NAMES || bytes > NAMES_BYTES {
            return Err(Error::Invalid(format!("{} names of {bytes} bytes", names.len())));
        }
        let target = self.rights.target.as_deref().unwrap_or_default();
        Ok(self.rights.host.borrow().withheld(target, names))
    }

    fn judge_releases(&self, package: &str, releases: &[Release]) -> Result<Vec<ReleaseVerdict>, Error> {
        let long = |release: &Release| {
            release.version.len() > TEXT_BYTES
                || release.license.as_ref().is_some_and(|license| license.len() > TEXT_BYTES)
        };
        if releases.len() > RELEASES || package.len() > TEXT_BYTES || releases.iter().any(long) {
            return Err(Error::Invalid(format!("{} releases of {package}", releases.len())));
        }
        if self.kind() != "proxy" {
            return Err(Error::Denied);
        }
        let rules: ReleaseRules =
            serde_json::from_str(&self.settings()).map_err(|error| Error::Other(error.to_string()))?;
        let rules = rules.for_package(package);
        let first_seen = self.first_seen(package, releases, |release| rules.lacks_time(release));
        let host = self.rights.host.borrow();
        let mut verdicts = rules.judge_all(releases, &first_seen, host.now).verdicts;
        for (verdict, release) in verdicts.iter_mut().zip(releases) {
            if host.withheld_versions.contains_key(&(package.to_owned(), release.version.clone())) {
                *verdict = ReleaseVerdict::Withheld;
            }
        }
        Ok(verdicts)
    }

    fn judge_with_reasons(&self, package: &str, releases: &[Release]) -> Result<Vec<ReasonedVerdict>, Error> {
        let verdicts = self.judge_releases(package, releases)?;
        let host = self.rights.host.borrow();
        let reason = |release: &Release| {
            host.withheld_versions.get(&(package.to_owned(), release.version.clone())).cloned().flatten()
        };
        let reasoned = releases.iter().zip(verdicts);
        Ok(reasoned.map(|(release, verdict)| ReasonedVerdict { verdict, because: reason(release) }).collect())
    }

    fn judge_asked(&self, package: &str, release: &Release) -> Result<ReleaseVerdict, Error> {
        let verdicts = self.judge_releases(package, std::slice::from_ref(release))?;
        verdicts.into_iter().next().ok_or_else(|| Error::Other("no verdict".to_owned()))
    }

    fn advisories(&self, packages: &[String]) -> Result<String, Error> {
        self.rights.mark_untracked();
        let state = self.rights.host.borrow();
        let known = state.advisories.iter().filter(|(package, _)| packages.contains(package));
        let known: BTreeMap<&String, &serde_json::Value> = known.collect();
        serde_json::to_string(&known).map_err(|error| Error::Other(error.to_string()))
    }

    fn begin(&self) -> Result<Box<dyn HostTransaction>, Error> {
        if !self.rights.may_record(&self.name) {
            return Err(Error::Denied);
        }
        Ok(Box::new(MemoryTransaction::new(self.rights.clone(), self.name.clone())))
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Box<dyn HostBlob>>, Error> {
        if digest.algorithm() != "sha256" {
            return Err(Error::Invalid(format!("a blob is looked for by its SHA-256: {digest}")));
        }
        let held = self.change(|state| {
            let bytes = state.holds(digest.as_str()).then(|| state.bytes.get(digest.as_str()).cloned())??;
            state.lease(digest.as_str(), bytes.clone());
            Some(bytes)
        });
        match &held {
            Some(_) => self.rights.record_read(&self.name, TrackedRead::Blob(digest.to_string())),
            None => self.rights.mark_untracked(),
        }
        let bytes = held.or_else(|| self.rights.pending_bytes(&self.name, digest));
        Ok(bytes.map(MemoryBlob::boxed))
    }

    fn keep(&self, blob: &dyn HostBlob) -> Result<Digest, Error> {
        if !self.rights.may_record(&self.name) {
            return Err(Error::Denied);
        }
        let blob: &dyn Any = blob;
        let Some(blob) = blob.downcast_ref::<MemoryBlob>() else {
            return Err(Error::Invalid("the blob does not belong to this host".to_owned()));
        };
        let digest = state::digest("sha256", &blob.bytes)?;
        self.rights.keep(&self.name, digest.clone(), blob.bytes.clone());
        Ok(digest)
    }

    fn begin_upload(&self, note: &str) -> Result<String, Error> {
        if !self.rights.may_write(&self.name) {
            return Err(Error::Denied);
        }
        if note.len() > NOTE {
            return Err(Error::Invalid("a note is at most 4 KiB".to_owned()));
        }
        let name = self.rights.host.borrow_mut().new_name();
        let upload = UploadState { note: note.to_owned(), bytes: Vec::new() };
        self.change(|state| state.uploads.insert(name.clone(), upload));
        Ok(name)
    }

    fn upload(&self, name: &str) -> Result<Option<Box<dyn HostUpload>>, Error> {
        self.rights.mark_untracked();
        let Some(upload) = self.state(|state| state.uploads.get(name).cloned()) else { return Ok(None) };
        let received =
            self.received.as_ref().filter(|(brought, _)| brought == name).map_or(0, |(_, count)| *count);
        let (repository, name) = (self.name.clone(), name.to_owned());
        Ok(Some(Box::new(MemoryUpload { rights: self.rights.clone(), repository, name, upload, received })))
    }

    fn begin_login(&self) -> Result<Login, Error> {
        let mut state = self.rights.host.borrow_mut();
        if state.logins.len() >= LOGINS {
            return Err(Error::TooLarge(LOGINS as u64));
        }
        let id = state.new_name();
        state.logins.insert(id.clone(), LoginState::Waiting(5));
        Ok(Login { url: format!("https://packhouse.test/login/{id}"), id })
    }

    fn signing_keys(&self) -> Result<Vec<PublicKey>, Error> {
        let key = base64::engine::general_purpose::STANDARD.encode("a key of the memory host's");
        Ok(vec![PublicKey {
            id: "memory".to_owned(),
            kind: "ecdsa-sha2-nistp256".to_owned(),
            key,
            expires: None,
        }])
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, Error> {
        if self.rights.action != Some(packhouse_sdk::Action::Publish) {
            return Err(Error::Denied);
        }
        let value = state::digest("sha256", message)?.hex().as_bytes().to_vec();
        Ok(Signature { key_id: "memory".to_owned(), value })
    }

    fn find_pieces(&self, names: &[String]) -> Result<Vec<Option<HostPiece>>, Error> {
        self.rights.find_pieces(&self.name, names)
    }

    fn start_piece(&self, name: &str) -> Result<Box<dyn HostMaking>, Error> {
        self.rights.start_piece(&self.name, name)
    }
}
