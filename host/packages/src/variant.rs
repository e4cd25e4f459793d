//! Which variant of a response a request gets, or that it has one already.

use http::HeaderMap;
use http::header::RANGE;
use packhouse_wire::conditional::{Outcome, Validators, judge};
use packhouse_wire::content_coding::{Coding, accepted};

use crate::prepared_response::PreparedResponse;

/// What a GET or a HEAD is answered with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selected<'a> {
    /// The content in this coding.
    Send(Coding),
    /// 304, for the variant that is known by these.
    NotModified(&'a Validators),
    /// 412.
    Failed,
}

/// Judges the request's conditions for each variant that it accepts, the preferred one first. A client may name the tag of any of
/// them, because it may have asked before in another way, or got the content as it was while it was being compressed. A range is one of
/// the content as it is.
pub(crate) fn select<'a>(
    response: &'a PreparedResponse,
    identity: &'a Validators,
    headers: &HeaderMap,
) -> Selected<'a> {
    let Some(variants) = response.variants.as_ref().filter(|_| !headers.contains_key(RANGE)) else {
        return match judge(headers, identity) {
            Outcome::Send => Selected::Send(Coding::Identity),
            Outcome::NotModified => Selected::NotModified(identity),
            Outcome::Failed => Selected::Failed,
        };
    };
    let mut selected = Selected::Failed;
    for coding in accepted(headers) {
        let validators = variants.validators(coding).unwrap_or(identity);
        match (judge(headers, validators), selected) {
            (Outcome::NotModified, _) => return Selected::NotModified(validators),
            (Outcome::Send, Selected::Failed) => selected = Selected::Send(coding),
            (Outcome::Send | Outcome::Failed, _) => (),
        }
    }
    selected
}
