//! Deletion of a version with its file and its signature. The file name stays reserved.

use crate::records::{self, ChartRecord};
use crate::{api, busy, files, name};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, Step, VersionId,
};
use serde_json::json;

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let chart = params.segment("name");
    let intent = Intent::delete().subject(format!("{chart} {}", params.segment("version")));
    Ok(if name::is_name(chart) { intent.about_package(chart) } else { intent })
}

pub(crate) fn plan_file(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::delete().subject(params.segment("file")))
}

/// Handles `DELETE /api/charts/NAME/VERSION` of ChartMuseum's API.
pub(crate) fn version(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (chart, number) = (params.segment("name"), params.segment("version"));
    if remove(cx.target()?, chart, number)? {
        Ok(Response::json(&json!({"deleted": true}))?)
    } else {
        Err(api::missing(chart, number))
    }
}

/// Handles `DELETE` of a chart by its file name.
pub(crate) fn file(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, file) = (cx.target()?, params.segment("file"));
    if file.ends_with(".prov") {
        return Err(Failure::invalid(
            "A signature is deleted together with its chart; delete the file of the chart",
        ));
    }
    let record = records::by_file(repository, file)?.ok_or_else(|| files::missing(file))?;
    if remove(repository, &record.chart.name, &record.chart.version)? {
        Ok(Response::no_content())
    } else {
        Err(files::missing(file))
    }
}

/// Removes a version. Returns false if it does not exist.
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
