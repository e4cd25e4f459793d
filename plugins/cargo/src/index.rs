//! The sparse index: `config.json`, and for each crate a page with one line per version.

use crate::line::without_build;
use crate::name::Name;
use crate::proxy;
use crate::records::{VersionRecord, missing};
use packhouse_sdk::{Context, Failure, Intent, Output, Params, Request, Response};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

/// The setting that lets clients read a repository without a credential. Repositories of every
/// format have it.
#[derive(Deserialize)]
struct Visibility {
    #[serde(default)]
    public: bool,
}

/// Plans a read of `config.json`. A credential that may only publish may read this file, because
/// cargo reads it before it publishes.
pub(crate) fn plan_config(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().subject("config.json").many_packages().for_publish())
}

/// Returns the addresses of the files and the API, and whether cargo must send its token when it
/// reads.
pub(crate) fn config(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let public = cx.target()?.settings::<Visibility>()?.public;
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

/// Returns the lines of a crate from all sources: the requested repository, or the members of a
/// group. If several sources have the same version, only the line of the first source is included.
pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let spelling = params.segment("name");
    let name = Name::of_page(params).ok_or_else(|| missing(spelling))?;
    let (mut out, mut emitted) = (Output::new(cx), BTreeSet::new());
    let mut left_out = cx.left_out();
    for source in cx.sources()? {
        if source.is_proxy() {
            let lines = proxy::lines(cx, source, &name, spelling).map(Some);
            for line in left_out.unless_failed(source, lines)?.unwrap_or_default() {
                if emitted.insert(without_build(&line.version)) {
                    out.push(&line.text)?;
                    out.push("\n")?;
                }
            }
            continue;
        }
        for record in VersionRecord::all(source, &name)? {
            // Another spelling of the name has another page, which cargo requests separately.
            let same_spelling = record.line.name.eq_ignore_ascii_case(spelling);
            let number = semver::Version::parse(&record.line.vers).map(|version| without_build(&version));
            if same_spelling && emitted.insert(number.unwrap_or_default()) {
                out.json(&record.line)?;
                out.push("\n")?;
            }
        }
    }
    left_out.or_failure((!emitted.is_empty()).then_some(()))?.ok_or_else(|| missing(spelling))?;
    Ok(Response::ok().content_type("text/plain; charset=utf-8").revalidate().content(out.finish()?))
}
