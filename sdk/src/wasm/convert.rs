//! Conversions between values of the SDK and of the contract.

use super::generated::packhouse::format as wit;
use crate::{
    BodyPlan, Digest, Error, Expectation, Failure, Freshness, Intent, Outcome, Release, ReleaseVerdict,
    Statement, Version, VersionDocument, VersionId,
};

pub(super) fn error(error: wit::types::Error) -> Error {
    match error {
        wit::types::Error::Denied => Error::Denied,
        wit::types::Error::Invalid(text) => Error::Invalid(text),
        wit::types::Error::TooLarge(bytes) => Error::TooLarge(bytes),
        wit::types::Error::Unavailable(text) => Error::Unavailable(text),
        wit::types::Error::Other(text) => Error::Other(text),
    }
}

pub(super) fn headers(headers: Vec<(String, String)>) -> Vec<wit::types::Header> {
    headers.into_iter().map(|(name, value)| wit::types::Header { name, value }).collect()
}

pub(super) fn pairs(headers: Vec<wit::types::Header>) -> Vec<(String, String)> {
    headers.into_iter().map(|header| (header.name, header.value)).collect()
}

pub(super) fn intent(intent: Intent) -> wit::http::Intent {
    let host = wit::http::Intent::new(intent.action.as_str(), intent.subject.as_deref());
    match intent.body {
        BodyPlan::None => {}
        BodyPlan::Body { limit } => host.body(limit),
        BodyPlan::Parts { limit } => host.parts(limit),
        BodyPlan::Append { upload, offset, limit } => host.append(&upload, offset, limit),
    }
    if let Some(limit) = &intent.limit {
        host.under(limit);
    }
    if !intent.digests.is_empty() {
        host.digests(&intent.digests);
    }
    intent.also_read.iter().for_each(|name| host.also_read(name));
    if intent.check {
        host.check();
    }
    if intent.for_publish {
        host.for_publish();
    }
    intent.packages.iter().for_each(|name| host.about_package(name));
    if intent.many_packages {
        host.many_packages();
    }
    host
}

pub(super) fn failure(failure: Failure) -> wit::http::Failure {
    let problems = failure.problems.into_iter();
    wit::http::Failure {
        status: failure.status,
        headers: headers(failure.headers),
        problems: problems
            .map(|problem| wit::http::Problem {
                code: problem.code,
                message: problem.message,
                detail: problem.detail,
            })
            .collect(),
    }
}

pub(super) fn expectation(expect: Expectation) -> wit::records::Expectation {
    match expect {
        Expectation::Anything => wit::records::Expectation::Anything,
        Expectation::Absent => wit::records::Expectation::Absent,
        Expectation::Present => wit::records::Expectation::Present,
        Expectation::Revision(revision) => wit::records::Expectation::Revision(revision),
    }
}

pub(super) fn outcome(outcome: wit::records::Outcome) -> Outcome {
    match outcome {
        wit::records::Outcome::Applied(revision) => Outcome::Applied(revision),
        wit::records::Outcome::Stale(key) => Outcome::Stale(key),
        wit::records::Outcome::UnknownBlobs(digests) => {
            Outcome::UnknownBlobs(digests.into_iter().map(Digest::trusted).collect())
        }
    }
}

pub(super) fn version(version: &Version) -> wit::records::Version {
    let files = version.files.iter();
    wit::records::Version {
        name: version.name.clone(),
        version: version.version.clone(),
        files: files
            .map(|file| wit::records::File {
                path: file.path.clone(),
                digest: file.digest.to_string(),
                size: file.size,
            })
            .collect(),
        published: version.published,
        summary: version.summary.clone(),
        properties: version.properties.clone(),
        state: version.state.clone(),
    }
}

pub(super) fn version_id(id: &VersionId) -> wit::records::VersionId {
    wit::records::VersionId { name: id.name.clone(), version: id.version.clone() }
}

pub(super) fn document(document: &VersionDocument) -> wit::records::Document {
    wit::records::Document {
        id: version_id(&document.id),
        path: document.path.clone(),
        source: document.source.clone(),
        title: document.title.clone(),
        form: document.form.clone(),
        media_type: document.media_type.clone(),
        digest: document.digest.to_string(),
        size: document.size,
    }
}

pub(super) fn statement(statement: &Statement) -> wit::records::Statement {
    wit::records::Statement {
        id: version_id(&statement.id),
        path: statement.path.clone(),
        source: statement.source.clone(),
        kind: statement.kind.clone(),
        subject: statement.subject.to_string(),
        bundle: statement.bundle.clone(),
    }
}

pub(super) fn freshness(freshness: Freshness) -> wit::upstream::Freshness {
    match freshness {
        Freshness::Immutable => wit::upstream::Freshness::Immutable,
        Freshness::Seconds(seconds) => wit::upstream::Freshness::Seconds(seconds),
        Freshness::Never => wit::upstream::Freshness::Never,
    }
}

pub(super) fn release(release: &Release) -> wit::releases::KnownVersion {
    let Release { version, published, withdrawn, license } = release.clone();
    wit::releases::KnownVersion { version, published, withdrawn, license }
}

pub(super) fn verdict(verdict: wit::releases::Verdict) -> ReleaseVerdict {
    match verdict {
        wit::releases::Verdict::Offered => ReleaseVerdict::Offered,
        wit::releases::Verdict::Withheld => ReleaseVerdict::Withheld,
        wit::releases::Verdict::FileDecides => ReleaseVerdict::FileDecides,
    }
}

pub(super) fn texts(digests: &[Digest]) -> Vec<String> {
    digests.iter().map(Digest::to_string).collect()
}

pub(super) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
