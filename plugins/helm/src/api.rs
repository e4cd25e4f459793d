//! The JSON API of ChartMuseum: lists of charts and versions.

use crate::listed::ListedChart;
use crate::listing;
use crate::{index, name};
use packhouse_sdk::{Context, Error, Failure, Intent, Output, Params, Request, Response};
use serde_json::json;

pub(crate) fn plan_many(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages())
}

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let chart = params.segment("name");
    let intent = Intent::read().subject(chart);
    Ok(if name::is_name(chart) { intent.about_package(chart) } else { intent })
}

/// Handles `GET` of the repository's address. A client can test its credential with this request.
pub(crate) fn root(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(Response::text(format!("A Helm chart repository: helm repo add NAME {}\n", request.address())))
}

/// Handles `GET /api/charts`: all versions of all charts.
pub(crate) fn all(cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let listing = listing::all(cx)?.ok_or_else(index::missing)?;
    let mut out = Output::new(cx);
    out.push("{")?;
    for (at, (name, versions)) in listing.iter().enumerate() {
        out.push(if at > 0 { "," } else { "" })?;
        out.json(name)?;
        out.push(":")?;
        write_list(&mut out, versions)?;
    }
    out.push("}")?;
    json_response(out)
}

/// Handles `GET /api/charts/NAME`: all versions of one chart.
pub(crate) fn versions(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let chart = params.segment("name");
    let versions = listing::of(cx, chart)?;
    if versions.is_empty() {
        return Err(Failure::not_found(format!("There is no chart {chart} in this repository")));
    }
    let mut out = Output::new(cx);
    write_list(&mut out, &versions)?;
    json_response(out)
}

/// Handles `GET /api/charts/NAME/VERSION`: one version.
pub(crate) fn version(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (chart, number) = (params.segment("name"), params.segment("version"));
    let found = listing::of(cx, chart)?.into_iter().find(|one| one.chart.version == number);
    let found = found.ok_or_else(|| missing(chart, number))?;
    Ok(Response::json(&json!(index::entry(&found)?))?.revalidate())
}

pub(crate) fn missing(chart: &str, number: &str) -> Failure {
    Failure::not_found(format!("There is no version {number} of the chart {chart} in this repository"))
}

fn write_list(out: &mut Output<'_>, versions: &[ListedChart]) -> Result<(), Error> {
    out.push("[")?;
    for (at, one) in versions.iter().enumerate() {
        out.push(if at > 0 { "," } else { "" })?;
        out.json(&index::entry(one)?)?;
    }
    out.push("]")
}

fn json_response(out: Output<'_>) -> Result<Response, Failure> {
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}
