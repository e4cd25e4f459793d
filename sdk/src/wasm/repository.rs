//! Repositories and transactions of the SDK, which call the imports.

use super::generated::packhouse::format as wit;
use super::{blobs, convert};
use crate::host::{
    HostBlob, HostMaking, HostPiece, HostRepository, HostRun, HostRuns, HostTransaction, HostUpload,
};
use crate::{
    Digest, Entry, Error, Expectation, Login, Matches, Outcome, PublicKey, ReasonedVerdict, Release,
    ReleaseVerdict, Signature, Statement, Version, VersionDocument, VersionId,
};
use std::any::Any;

/// Handle of a repository.
pub(super) struct Handle(pub(super) wit::records::Repository);

/// Returns the host's handle of a repository. In Wasm every repository has one, unless a format
/// implements [`HostRepository`] itself.
pub(super) fn handle(host: &dyn HostRepository) -> Result<&wit::records::Repository, Error> {
    let host: &dyn Any = host;
    let handle = host.downcast_ref::<Handle>();
    handle
        .map(|handle| &handle.0)
        .ok_or_else(|| Error::Invalid("the repository does not belong to the host".to_owned()))
}

fn entry(entry: wit::records::Entry) -> Entry {
    Entry { key: entry.key, value: entry.value, revision: entry.revision }
}

impl HostRepository for Handle {
    fn name(&self) -> String {
        self.0.name()
    }

    fn kind(&self) -> String {
        self.0.kind()
    }

    fn settings(&self) -> String {
        self.0.settings()
    }

    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        Ok(self.0.get(key).map_err(convert::error)?.map(entry))
    }

    fn scan(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Entry>, Error> {
        let entries = self.0.scan(prefix, after, limit).map_err(convert::error)?;
        Ok(entries.into_iter().map(entry).collect())
    }

    fn keys(
        &self,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, Error> {
        self.0.keys(prefix, delimiter, after, limit).map_err(convert::error)
    }

    fn runs(&self, prefix: &str, after: Option<&str>) -> Result<HostRuns, Error> {
        let found = self.0.runs(prefix, after).map_err(convert::error)?;
        let runs = found.runs.into_iter().map(|run| HostRun { last: run.last, count: run.count });
        Ok(HostRuns { runs: runs.collect(), more: found.more })
    }

    fn search(&self, text: &str, offset: u32, limit: u32) -> Result<Matches, Error> {
        let matches = self.0.search(text, offset, limit).map_err(convert::error)?;
        Ok(Matches { names: matches.names, total: matches.total })
    }

    fn withheld(&self, names: &[String]) -> Result<Vec<String>, Error> {
        self.0.withheld(names).map_err(convert::error)
    }

    fn judge_releases(&self, package: &str, releases: &[Release]) -> Result<Vec<ReleaseVerdict>, Error> {
        let releases: Vec<_> = releases.iter().map(convert::release).collect();
        let verdicts = wit::releases::judge_versions(&self.0, package, &releases).map_err(convert::error)?;
        Ok(verdicts.into_iter().map(convert::verdict).collect())
    }

    fn judge_with_reasons(&self, package: &str, releases: &[Release]) -> Result<Vec<ReasonedVerdict>, Error> {
        let releases: Vec<_> = releases.iter().map(convert::release).collect();
        let verdicts =
            wit::releases::judge_with_reasons(&self.0, package, &releases).map_err(convert::error)?;
        let reasoned = |one: wit::releases::ReasonedVerdict| ReasonedVerdict {
            verdict: convert::verdict(one.verdict),
            because: one.because,
        };
        Ok(verdicts.into_iter().map(reasoned).collect())
    }

    fn judge_asked(&self, package: &str, release: &Release) -> Result<ReleaseVerdict, Error> {
        let verdict = wit::releases::judge_asked(&self.0, package, &convert::release(release));
        verdict.map(convert::verdict).map_err(convert::error)
    }

    fn advisories(&self, packages: &[String]) -> Result<String, Error> {
        wit::advisories::find(&self.0, packages).map_err(convert::error)
    }

    fn begin(&self) -> Result<Box<dyn HostTransaction>, Error> {
        Ok(Box::new(TransactionHandle(self.0.begin().map_err(convert::error)?)))
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Box<dyn HostBlob>>, Error> {
        Ok(self.0.blob(digest.as_str()).map_err(convert::error)?.map(blobs::blob))
    }

    fn keep(&self, blob: &dyn HostBlob) -> Result<Digest, Error> {
        self.0.keep(blobs::handle(blob)?).map(Digest::trusted).map_err(convert::error)
    }

    fn begin_upload(&self, note: &str) -> Result<String, Error> {
        self.0.begin_upload(note).map_err(convert::error)
    }

    fn upload(&self, name: &str) -> Result<Option<Box<dyn HostUpload>>, Error> {
        let upload = self.0.upload(name).map_err(convert::error)?;
        Ok(upload.map(|upload| Box::new(blobs::UploadHandle(upload)) as Box<dyn HostUpload>))
    }

    fn begin_login(&self) -> Result<Login, Error> {
        let login = wit::identity::begin_login(&self.0).map_err(convert::error)?;
        Ok(Login { id: login.id, url: login.url })
    }

    fn signing_keys(&self) -> Result<Vec<PublicKey>, Error> {
        let keys = wit::signing::keys(&self.0).map_err(convert::error)?.into_iter();
        Ok(keys
            .map(|key| PublicKey { id: key.id, kind: key.kind, key: key.key, expires: key.expires })
            .collect())
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, Error> {
        let signature = wit::signing::sign(&self.0, message).map_err(convert::error)?;
        Ok(Signature { key_id: signature.key_id, value: signature.value })
    }

    fn find_pieces(&self, names: &[String]) -> Result<Vec<Option<HostPiece>>, Error> {
        let found = wit::memo::find_noted(&self.0, names).map_err(convert::error)?;
        let piece = |found: wit::memo::Noted| HostPiece {
            note: found.note,
            body: blobs::blob(found.body),
            size: found.size,
        };
        Ok(found.into_iter().map(|found| found.map(piece)).collect())
    }

    fn start_piece(&self, name: &str) -> Result<Box<dyn HostMaking>, Error> {
        let making = wit::memo::Making::start(&self.0, name).map_err(convert::error)?;
        Ok(Box::new(MakingHandle(making)))
    }
}

struct MakingHandle(wit::memo::Making);

impl HostMaking for MakingHandle {
    fn finish(self: Box<Self>, note: &[u8], bytes: &[u8]) -> Result<Box<dyn HostBlob>, Error> {
        wit::memo::Making::finish_noted(self.0, note, bytes).map(blobs::blob).map_err(convert::error)
    }
}

struct TransactionHandle(wit::records::Transaction);

impl HostTransaction for TransactionHandle {
    fn put(&mut self, key: &str, value: &[u8], expect: Expectation, blobs: &[Digest]) {
        self.0.put(key, value, convert::expectation(expect), &convert::texts(blobs));
    }

    fn remove(&mut self, key: &str, expect: Expectation) {
        self.0.remove(key, convert::expectation(expect));
    }

    fn require(&mut self, key: &str, expect: Expectation) {
        self.0.require(key, convert::expectation(expect));
    }

    fn show(&mut self, version: &Version) {
        self.0.show(&convert::version(version));
    }

    fn hide(&mut self, id: &VersionId) {
        self.0.hide(&convert::version_id(id));
    }

    fn hide_file(&mut self, id: &VersionId, path: &str) {
        self.0.hide_file(&convert::version_id(id), path);
    }

    fn attest(&mut self, statement: &Statement) {
        self.0.attest(&convert::statement(statement));
    }

    fn document(&mut self, document: &VersionDocument) {
        self.0.document(&convert::document(document));
    }

    fn about_package(&mut self, name: &str) {
        self.0.about_package(name);
    }

    fn commit(self: Box<Self>) -> Result<Outcome, Error> {
        wit::records::Transaction::commit(self.0).map(convert::outcome).map_err(convert::error)
    }
}
