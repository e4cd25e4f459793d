//! `GET` and `HEAD` of a file or folder in a repository or in the members of a group.

use crate::path::{self, PathTarget};
use crate::{hosted, listing, missing, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response, percent_encode};

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = PathTarget::parse(&request.path)?;
    let intent = Intent::read().subject(target.subject());
    Ok(match &target {
        PathTarget::Folder(_) => intent.many_packages(),
        PathTarget::File(file) => intent.about_package(path::package(path::split(file).0)),
    })
}

pub(crate) fn get(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let path = match PathTarget::parse(&request.path)? {
        PathTarget::Folder(folder) => return listing::folder(cx, request, &folder),
        PathTarget::File(path) => path,
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
            return Ok(redirect_to_folder(request));
        }
    }
    Err(missing(&path))
}

/// Redirects to the folder's address with a slash at its end. Without the slash, browsers would
/// resolve the relative links of the listing against the parent folder.
fn redirect_to_folder(request: &Request) -> Response {
    let path: Vec<String> = request.path.iter().map(|segment| percent_encode(segment)).collect();
    Response::redirect(request.link(&format!("{}/", path.join("/"))))
}
