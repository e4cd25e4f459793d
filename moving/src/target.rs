//! What all formats need while they move: the target, the report, and how much goes on at once.

use std::future::Future;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use reqwest::RequestBuilder;

use crate::body::Piece;
use crate::client::{checked, unreachable, whole};
use crate::digests::Digests;
use crate::fault::{Fault, again};
use crate::folder::Folder;
use crate::origin::Origin;
use crate::report::{Line, Outcome, Report};
use crate::server::Server;
use crate::stream::{Came, verified};

/// The header in which a publish says that another server had the same, and when it was first published.
const PUBLISHED_AT: &str = "packhouse-published-at";

/// What a publish says of when something was first published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PublishedAt {
    /// Nothing: the member may not. It is a new publish.
    Unsaid,
    /// That it was published elsewhere, at a time that the source does not tell or that is not kept.
    Unknown,
    At(Timestamp),
}

impl PublishedAt {
    /// Whether a server refuses this because it does not know `unknown`, as the version before did not: by the code, or by the sentence
    /// where the format's errors have no place for the code.
    pub(crate) fn is_not_understood(self, fault: &Fault) -> bool {
        let Fault::Refused(text) = fault else { return false };
        let text = text.to_ascii_lowercase();
        let names_it = text.contains("invalid_published_at") || text.contains(PUBLISHED_AT);
        self == PublishedAt::Unknown && text.contains(" answers 400") && names_it
    }
}

/// Where something is moved to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A repository.
    Server(Arc<Server>),
    /// A folder in the format's own layout.
    Folder(Arc<Folder>),
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) target: Target,
    pub(crate) report: Report,
    /// How many things are moved at once.
    pub(crate) jobs: usize,
    /// Whether times of publication are kept.
    pub(crate) times: bool,
    /// Names to move; all where there are none.
    pub(crate) only: Vec<String>,
}

/// A file on its way, as the report has it and with all that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) line: Line,
    pub(crate) origin: Origin,
    pub(crate) stated: Digests,
    pub(crate) size: Option<u64>,
    /// When it was published; where none is said, when the source changed it last.
    pub(crate) published: Option<Timestamp>,
}

impl Run {
    /// A run to this target.
    pub(crate) fn new(target: Target, report: Report, jobs: usize) -> Run {
        Run { target, report, jobs: jobs.max(1), times: true, only: Vec::new() }
    }

    /// Whether a package of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Does the work of each, some at once. A credential that is not taken ends all of it.
    pub(crate) async fn each<T, F: Future<Output = Result<(), Fault>>>(
        &self,
        all: impl Stream<Item = T>,
        work: impl Fn(T) -> F,
    ) -> Result<(), Fault> {
        let mut running = std::pin::pin!(all.map(work).buffer_unordered(self.jobs));
        while let Some(done) = running.next().await {
            done?;
        }
        Ok(())
    }

    /// Takes up how something ended. Only what ends the whole run is an error from here on.
    pub(crate) fn ended(&self, line: Line, result: Result<Outcome, Fault>) -> Result<(), Fault> {
        match result {
            Ok(outcome) => self.report.add(line.ended(outcome, "")),
            Err(Fault::Credential(text)) => return Err(Fault::Credential(text)),
            Err(Fault::Away(text, _)) => self.report.add(line.ended(Outcome::Failed, text)),
            Err(Fault::Missing(text) | Fault::Refused(text)) => {
                self.report.add(line.ended(Outcome::Refused, text))
            }
        }
        Ok(())
    }

    /// What a publish says where the source tells this time.
    pub(crate) fn published_at(&self, at: Option<Timestamp>) -> PublishedAt {
        let manages = matches!(&self.target, Target::Server(server) if server.manages);
        let at = at.filter(|at| self.times && *at <= Timestamp::now() && *at >= Timestamp::UNIX_EPOCH);
        match at {
            _ if !manages => PublishedAt::Unsaid,
            Some(at) => PublishedAt::At(at),
            None => PublishedAt::Unknown,
        }
    }

    /// Sends a parcel's bytes to a server, again where that can help, and once more where it does not know the time `unknown`. `request`
    /// makes the request from the body, its length, and the time of publication.
    pub(crate) async fn send(
        &self,
        parcel: &Parcel,
        request: impl Fn(BoxStream<'static, Piece>, Option<u64>, PublishedAt) -> RequestBuilder,
    ) -> Result<Came, Fault> {
        again(|| async {
            let mut says_unknown = true;
            loop {
                let opened = parcel.origin.open().await?;
                let published = match self.published_at(parcel.published.or(opened.modified)) {
                    PublishedAt::Unknown if !says_unknown => PublishedAt::Unsaid,
                    published => published,
                };
                let length = parcel.size.or(opened.length);
                let (stream, verdict) = verified(opened, parcel.stated.clone(), parcel.size);
                let request = request(stream, length, published);
                let sent = request.send().await;
                // Why a body broke off says more than that it did.
                if let Some(Err(wrong)) = verdict.get() {
                    return Err(wrong);
                }
                let answer = sent.map_err(|error| unreachable(&error))?;
                if !answer.status().is_success() {
                    let fault = crate::client::refused(answer).await;
                    if published.is_not_understood(&fault) {
                        says_unknown = false;
                        continue;
                    }
                    return Err(fault);
                }
                whole(answer).await?;
                let broke_off = || Err(Fault::Away("the source broke off".to_owned(), None));
                return verdict.get().unwrap_or_else(broke_off);
            }
        })
        .await
    }
}

/// Sends a request without a body of consequence, again where that can help.
pub(crate) async fn ask(request: impl Fn() -> RequestBuilder) -> Result<reqwest::Response, Fault> {
    again(|| checked(request())).await
}

/// A request that says when something was published.
pub(crate) fn published(request: RequestBuilder, at: PublishedAt) -> RequestBuilder {
    match at {
        PublishedAt::Unsaid => request,
        PublishedAt::Unknown => request.header(PUBLISHED_AT, "unknown"),
        PublishedAt::At(at) => request.header(PUBLISHED_AT, at.to_string()),
    }
}

/// A request whose body has this length, where it is known.
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
    fn a_server_that_does_not_know_unknown_is_told_from_others() {
        let sentence =
            "Packhouse-Published-At is a time as 2026-11-21T05:01:40Z, since 1970 and not in the future.";
        let refused = |text: &str| Fault::Refused(format!("http://h/repositories/r/a {text}"));
        for (at, fault, expected) in [
            (PublishedAt::Unknown, refused(&format!("answers 400: {sentence}")), true),
            (PublishedAt::Unknown, refused("answers 400: invalid_published_at"), true),
            (PublishedAt::Unknown, refused("answers 400: The name is wrong."), false),
            (PublishedAt::Unknown, refused(&format!("answers 403: {sentence}")), false),
            (PublishedAt::Unknown, Fault::Missing(format!("http://h/ answers 404: {sentence}")), false),
            (PublishedAt::Unsaid, refused(&format!("answers 400: {sentence}")), false),
            (PublishedAt::At(Timestamp::UNIX_EPOCH), refused("answers 400: invalid_published_at"), false),
        ] {
            assert_eq!(at.is_not_understood(&fault), expected, "{at:?}: {fault}");
        }
    }
}
