//! The root page of a repository, for people who open its URL in a browser, and for clients that
//! test a credential.

use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read())
}

pub(crate) fn get(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>Python packages</title></head>\n<body>\n\
        <h1>Python packages</h1>\n<p>The index is at <a href=\"simple/\">simple/</a>. Use its URL as the index URL of pip. \
        Upload files to the URL of this page.</p>\n</body>\n</html>\n";
    Ok(Response::html(page).revalidate())
}
