//! `GET` and `PUT` of a project's status.

use crate::answer::{self, no_project};
use crate::sources::Sources;
use crate::status::Status;
use crate::{busy, name, records};
use packhouse_sdk::{Context, Expectation, Failure, Intent, Outcome, Params, ReadAt, Request, Response};

/// Maximum bytes of a request that sets the status.
const LIMIT: u64 = 4 << 10;

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::publish().subject(params.segment("project")).body(LIMIT), params))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let requested = params.segment("project");
    let missing = || no_project(requested);
    let name = name::project(requested).ok_or_else(missing)?;
    let sources = Sources::open(cx, &name)?;
    let status = match sources.status()? {
        Some(status) => status,
        None => {
            sources.each(&mut |_, _| Ok(()))?.ok_or_else(missing)?;
            Status::default()
        }
    };
    Ok(Response::json(&status)?.revalidate())
}

pub(crate) fn put(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    let status: Status = serde_json::from_slice(&body.read_all(LIMIT)?).map_err(|_| {
        let words = "active, archived, quarantined or deprecated";
        answer::bad(format!("The body must be {{\"status\": …, \"reason\": …}}, where `status` is {words}"))
    })?;
    let requested = params.segment("project");
    let project = name::project(requested).ok_or_else(|| no_project(requested))?;
    let mut change = cx.target()?.begin()?;
    change.require(&records::project(&project), Expectation::Present);
    change.put_json(&records::status(&project), &status, Expectation::Anything, &[])?;
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::json(&status)?),
        Outcome::Stale(_) => Err(no_project(requested)),
        Outcome::UnknownBlobs(_) => Err(busy()),
    }
}
