//! The repository's own address: where people land who paste it into a browser, and what tells that a credential works.

use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read())
}

pub(crate) fn get(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>Python packages</title></head>\n<body>\n\
        <h1>Python packages</h1>\n<p>The index is at <a href=\"simple/\">simple/</a>: that is pip's index URL. \
        Uploads go to the repository's own address.</p>\n</body>\n</html>\n";
    Ok(Response::html(page).revalidate())
}
