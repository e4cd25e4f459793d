//! What a project says of itself as a whole (PEP 792): active, archived, quarantined, deprecated.

use crate::answer::{self, no_project};
use crate::index::Project;
use crate::{busy, name, records};
use packhouse_sdk::{Context, Expectation, Failure, Intent, Outcome, Params, ReadAt, Request, Response};
use serde::{Deserialize, Serialize};

/// Bytes of a status that is set.
const LIMIT: u64 = 4 << 10;

/// A project's status and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) status: Marker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// PEP 792's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Marker {
    #[default]
    Active,
    /// Nothing more is published.
    Archived,
    /// It may be harmful: nothing is offered, and nothing published.
    Quarantined,
    /// Another should be used.
    Deprecated,
}

impl Status {
    /// Whether the project's files may be installed.
    pub(crate) fn offers_files(&self) -> bool {
        self.status != Marker::Quarantined
    }

    /// Refuses an upload to a project that takes none.
    pub(crate) fn check_upload(&self, project: &str) -> Result<(), Failure> {
        let word = match self.status {
            Marker::Active | Marker::Deprecated => return Ok(()),
            Marker::Archived => "archived",
            Marker::Quarantined => "quarantined",
        };
        Err(Failure::denied(format!("The project {project} is {word} and takes no more files")))
    }
}

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::publish().subject(params.segment("project")).body(LIMIT))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let asked = params.segment("project");
    let missing = || no_project(asked);
    let project = Project::read(cx, &name::project(asked).ok_or_else(missing)?)?.ok_or_else(missing)?;
    Ok(Response::json(&project.status)?.revalidate())
}

pub(crate) fn put(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| Failure::internal("a PUT without its body"))?;
    let status: Status = serde_json::from_slice(&body.read_all(LIMIT)?).map_err(|_| {
        let words = "active, archived, quarantined or deprecated";
        answer::bad(format!("A status is {{\"status\": …, \"reason\": …}}, where the status is {words}"))
    })?;
    let asked = params.segment("project");
    let project = name::project(asked).ok_or_else(|| no_project(asked))?;
    let mut change = cx.target()?.begin()?;
    change.require(&records::project(&project), Expectation::Present);
    change.put_json(&records::status(&project), &status, Expectation::Anything, &[])?;
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::json(&status)?),
        Outcome::Stale(_) => Err(no_project(asked)),
        Outcome::UnknownBlobs(_) => Err(busy()),
    }
}
