//! One run of an import or export: its target, its report and its concurrency. All formats share
//! this.

use std::future::Future;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use reqwest::RequestBuilder;

use crate::body::BodyPiece;
use crate::client::{checked, unreachable, whole};
use crate::digests::Digests;
use crate::error::{MoveError, again};
use crate::folder::Folder;
use crate::origin::Origin;
use crate::report::{MoveOutcome, Report, ReportLine};
use crate::server::Server;
use crate::stream::{Measured, verified};

/// Header of a publish that moves content from another server. Its value is the time of the first
/// publication.
const PUBLISHED_AT: &str = "packhouse-published-at";

/// Statement of a publish about the time of the first publication.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PublishedAt {
    /// No statement, because the member may not make one or the server rejects `unknown`. The
    /// server then treats the content as a new publication.
    NotStated,
    /// The content was published elsewhere. The source does not state the time, or the run does not
    /// import times.
    Unknown,
    /// The content was published elsewhere at this time.
    At(Timestamp),
}

impl PublishedAt {
    /// Reports whether a server refused a publish because it does not support `unknown`, like the
    /// previous version of Packhouse. The error contains the code, or only the message if the
    /// format's errors have no code.
    pub(crate) fn rejects_unknown(self, fault: &MoveError) -> bool {
        let MoveError::Refused(text) = fault else { return false };
        let text = text.to_ascii_lowercase();
        let names_it = text.contains("invalid_published_at") || text.contains(PUBLISHED_AT);
        self == PublishedAt::Unknown && text.contains(" answers 400") && names_it
    }
}

/// Target of a run.
#[derive(Clone, Debug)]
pub(crate) enum MoveTarget {
    /// A repository on a server.
    Server(Arc<Server>),
    /// A folder with the layout of the format.
    Folder(Arc<Folder>),
}

/// One run of an import or export.
#[derive(Debug)]
pub(crate) struct MoveRun {
    pub(crate) target: MoveTarget,
    pub(crate) report: Report,
    /// Number of items that are moved concurrently.
    pub(crate) jobs: usize,
    /// True if times of publication are moved as well.
    pub(crate) times: bool,
    /// Packages to move. If empty, all are moved.
    pub(crate) only: Vec<String>,
}

/// A file to move, with its line of the report.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) line: ReportLine,
    pub(crate) origin: Origin,
    pub(crate) stated: Digests,
    pub(crate) size: Option<u64>,
    /// Time of publication, or the time of the last change if the source states only this.
    pub(crate) published: Option<Timestamp>,
}

impl MoveRun {
    pub(crate) fn new(target: MoveTarget, report: Report, jobs: usize) -> MoveRun {
        MoveRun { target, report, jobs: jobs.max(1), times: true, only: Vec::new() }
    }

    /// Reports whether this package is selected.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Does the work for each item, some of them concurrently. A refused credential ends the whole
    /// run.
    pub(crate) async fn each<T, F: Future<Output = Result<(), MoveError>>>(
        &self,
        all: impl Stream<Item = T>,
        work: impl Fn(T) -> F,
    ) -> Result<(), MoveError> {
        let mut running = std::pin::pin!(all.map(work).buffer_unordered(self.jobs));
        while let Some(done) = running.next().await {
            done?;
        }
        Ok(())
    }

    /// Adds the result for an item to the report. Returns only errors that end the whole run.
    pub(crate) fn ended(
        &self,
        line: ReportLine,
        result: Result<MoveOutcome, MoveError>,
    ) -> Result<(), MoveError> {
        match result {
            Ok(outcome) => self.report.add(line.ended(outcome, "")),
            Err(MoveError::Credential(text)) => return Err(MoveError::Credential(text)),
            Err(MoveError::Unavailable(text, _)) => self.report.add(line.ended(MoveOutcome::Failed, text)),
            Err(MoveError::Missing(text) | MoveError::Refused(text)) => {
                self.report.add(line.ended(MoveOutcome::Refused, text))
            }
        }
        Ok(())
    }

    /// The statement for content that has this time at the source.
    pub(crate) fn published_at(&self, at: Option<Timestamp>) -> PublishedAt {
        let manages = matches!(&self.target, MoveTarget::Server(server) if server.manages);
        let at = at.filter(|at| self.times && *at <= Timestamp::now() && *at >= Timestamp::UNIX_EPOCH);
        match at {
            _ if !manages => PublishedAt::NotStated,
            Some(at) => PublishedAt::At(at),
            None => PublishedAt::Unknown,
        }
    }

    /// Sends a parcel's bytes to a server, with retries. If the server does not support the time
    /// `unknown`, sends them again without a time. `request` builds the request from the body, its
    /// length, and the time of publication.
    pub(crate) async fn send(
        &self,
        parcel: &Parcel,
        request: impl Fn(BoxStream<'static, BodyPiece>, Option<u64>, PublishedAt) -> RequestBuilder,
    ) -> Result<Measured, MoveError> {
        again(|| async {
            let mut says_unknown = true;
            loop {
                let opened = parcel.origin.open().await?;
                let published = match self.published_at(parcel.published.or(opened.modified)) {
                    PublishedAt::Unknown if !says_unknown => PublishedAt::NotStated,
                    published => published,
                };
                let length = parcel.size.or(opened.length);
                let (stream, verdict) = verified(opened, parcel.stated.clone(), parcel.size);
                let request = request(stream, length, published);
                let sent = request.send().await;
                // The reason why the body ended early is more useful than the error of the request.
                if let Some(Err(wrong)) = verdict.get() {
                    return Err(wrong);
                }
                let answer = sent.map_err(|error| unreachable(&error))?;
                if !answer.status().is_success() {
                    let fault = crate::client::refused(answer).await;
                    if published.rejects_unknown(&fault) {
                        says_unknown = false;
                        continue;
                    }
                    return Err(fault);
                }
                whole(answer).await?;
                let broke_off = || Err(MoveError::Unavailable("the source ended early".to_owned(), None));
                return verdict.get().unwrap_or_else(broke_off);
            }
        })
        .await
    }
}

/// Sends a request with a small body, with retries.
pub(crate) async fn ask(request: impl Fn() -> RequestBuilder) -> Result<reqwest::Response, MoveError> {
    again(|| checked(request())).await
}

/// Adds the time of publication to a request.
pub(crate) fn published(request: RequestBuilder, at: PublishedAt) -> RequestBuilder {
    match at {
        PublishedAt::NotStated => request,
        PublishedAt::Unknown => request.header(PUBLISHED_AT, "unknown"),
        PublishedAt::At(at) => request.header(PUBLISHED_AT, at.to_string()),
    }
}

/// Sets the length of a request's body, if it is known.
pub(crate) fn sized(request: RequestBuilder, length: Option<u64>) -> RequestBuilder {
    match length {
        Some(length) => request.header(reqwest::header::CONTENT_LENGTH, length),
        None => request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_support_for_unknown_is_recognized() {
        let sentence =
            "Packhouse-Published-At is a time as 2026-11-21T05:01:40Z, since 1970 and not in the future.";
        let refused = |text: &str| MoveError::Refused(format!("http://h/repositories/r/a {text}"));
        for (at, fault, expected) in [
            (PublishedAt::Unknown, refused(&format!("answers 400: {sentence}")), true),
            (PublishedAt::Unknown, refused("answers 400: invalid_published_at"), true),
            (PublishedAt::Unknown, refused("answers 400: The name is wrong."), false),
            (PublishedAt::Unknown, refused(&format!("answers 403: {sentence}")), false),
            (PublishedAt::Unknown, MoveError::Missing(format!("http://h/ answers 404: {sentence}")), false),
            (PublishedAt::NotStated, refused(&format!("answers 400: {sentence}")), false),
            (PublishedAt::At(Timestamp::UNIX_EPOCH), refused("answers 400: invalid_published_at"), false),
        ] {
            assert_eq!(at.rejects_unknown(&fault), expected, "{at:?}: {fault}");
        }
    }
}
