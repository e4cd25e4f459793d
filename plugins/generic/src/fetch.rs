//! `GET` and `HEAD`: a path is looked up in the repository, or in a group's members.

use crate::path::{self, Target};
use crate::{hosted, listing, missing, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response, percent_encode};

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = Target::parse(&request.path)?;
    let intent = Intent::read().subject(target.subject());
    Ok(match &target {
        Target::Folder(_) => intent.many_packages(),
        Target::File(file) => intent.about_package(path::package(path::split(file).0)),
    })
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let path = match Target::parse(&request.path)? {
        Target::Folder(folder) => return listing::folder(cx, request, &folder),
        Target::File(path) => path,
    };
    let found = cx.first(|source| {
        if source.is_proxy() {
            proxy::file(cx, source, request, &path)
        } else {
            Ok(hosted::file(source, &path)?)
        }
    })?;
    if let Some(found) = found {
        return Ok(found);
    }
    for source in cx.hosted()? {
        if hosted::is_folder(source, &path)? {
            return Ok(to_folder(request));
        }
    }
    Err(missing(&path))
}

/// A folder's own address ends with a slash, or its links would lead elsewhere.
fn to_folder(request: &Request) -> Response {
    let path: Vec<String> = request.path.iter().map(|segment| percent_encode(segment)).collect();
    Response::redirect(request.link(&format!("{}/", path.join("/"))))
}
