//! Deleting a version: its file goes with its signature. The file's name stays used.

use crate::records::{self, ChartRecord};
use crate::{api, busy, files, name};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, Step, VersionId,
};
use serde_json::json;

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::delete().subject(format!("{} {}", params.segment("name"), params.segment("version"))))
}

pub(crate) fn plan_file(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::delete().subject(params.segment("file")))
}

/// `DELETE /api/charts/NAME/VERSION`, as ChartMuseum has it.
pub(crate) fn version(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (chart, number) = (params.segment("name"), params.segment("version"));
    if remove(cx.target()?, chart, number)? {
        Ok(Response::json(&json!({"deleted": true}))?)
    } else {
        Err(api::missing(chart, number))
    }
}

/// `DELETE` of a file by its name.
pub(crate) fn file(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, asked) = (cx.target()?, params.segment("file"));
    if asked.ends_with(".prov") {
        return Err(Failure::invalid("A signature is deleted with its chart: name the chart's own file"));
    }
    let record = records::by_file(repository, asked)?.ok_or_else(|| files::missing(asked))?;
    if remove(repository, &record.chart.name, &record.chart.version)? {
        Ok(Response::no_content())
    } else {
        Err(files::missing(asked))
    }
}

/// Removes a version; false where there is none.
pub(crate) fn remove(repository: &Repository, chart: &str, number: &str) -> Result<bool, Failure> {
    if !name::is_name(chart) || name::version(number).is_none() {
        return Ok(false);
    }
    let key = records::version(chart, number);
    repository.update_if_needed(busy, |change| {
        let Some(record) = repository.get_json::<ChartRecord>(&key)? else { return Ok(Step::Done(false)) };
        change.remove(&key, Expectation::Revision(record.revision));
        change.require(&records::file(&name::file(chart, number)), Expectation::Anything);
        change.hide(&VersionId::new(chart, number));
        Ok(Step::Commit(true))
    })
}
