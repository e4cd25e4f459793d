//! The sparse index: `config.json`, and a page for each crate with a line for each version.

use crate::line::without_build;
use crate::name::Name;
use crate::proxy;
use crate::records::{VersionRecord, missing};
use packhouse_sdk::{Context, Failure, Intent, Output, Params, Request, Response};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

/// What every repository's settings say of who may read it.
#[derive(Deserialize)]
struct Common {
    #[serde(default)]
    public: bool,
}

/// Cargo reads it before it publishes, too.
pub(crate) fn plan_config(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().subject("config.json").many_packages().for_publish())
}

/// Where files and the API are, and whether cargo is to show its token when it reads.
pub(crate) fn config(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let public = cx.target()?.settings::<Common>()?.public;
    let config =
        json!({"dl": request.link("api/v1/crates"), "api": request.address(), "auth-required": !public});
    Ok(Response::json(&config)?.revalidate())
}

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let intent = Intent::read().subject(params.segment("name")).for_publish();
    Ok(match Name::of_page(params) {
        Some(name) => intent.about_package(name.as_str()),
        None => intent.many_packages(),
    })
}

/// The lines of all sources; of two that have the same version the first one's.
pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let said = params.segment("name");
    let name = Name::of_page(params).ok_or_else(|| missing(said))?;
    let (mut out, mut seen) = (Output::new(cx), BTreeSet::new());
    let mut left_out = cx.left_out();
    for source in cx.sources()? {
        if source.is_proxy() {
            let lines = proxy::lines(cx, source, &name, said).map(Some);
            for line in left_out.unless_failed(source, lines)?.unwrap_or_default() {
                if seen.insert(without_build(&line.version)) {
                    out.push(&line.text)?;
                    out.push("\n")?;
                }
            }
            continue;
        }
        for record in VersionRecord::all(source, &name)? {
            // Another spelling of the name is another page, which cargo asks for by itself.
            let own = record.line.name.eq_ignore_ascii_case(said);
            let number = semver::Version::parse(&record.line.vers).map(|version| without_build(&version));
            if own && seen.insert(number.unwrap_or_default()) {
                out.json(&record.line)?;
                out.push("\n")?;
            }
        }
    }
    left_out.or_failure((!seen.is_empty()).then_some(()))?.ok_or_else(|| missing(said))?;
    Ok(Response::ok().content_type("text/plain; charset=utf-8").revalidate().content(out.finish()?))
}
