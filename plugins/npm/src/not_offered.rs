//! Requests below `-/` that other registries support and this server does not. Each response says
//! what to use instead.

use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};

pub(crate) fn plan(request: &Request<'_>, _params: &Params<'_>) -> Result<Intent, Failure> {
    Err(failure(&request.path))
}

pub(crate) fn answer(
    _cx: &Context,
    request: &Request<'_>,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    Err(failure(&request.path))
}

/// Returns a 404, the status by which clients know that a registry does not support a request.
pub(crate) fn failure(path: &[String]) -> Failure {
    let segments: Vec<&str> = path.iter().map(String::as_str).collect();
    Failure::new(404, "not_supported", sentence(&segments))
}

fn sentence(path: &[&str]) -> &'static str {
    match path {
        ["-", "npm", "v1", "user", ..] => {
            "This server does not support `npm profile`: change your password and your profile in the portal"
        }
        ["-", "npm", "v1", "tokens", ..] => {
            "This server does not support this request: create and revoke tokens in the portal"
        }
        ["-", "package", .., "access" | "collaborators"] | ["-", "org" | "user" | "team", .., "package"] => {
            "This server does not support `npm access`: grant rights to members, teams and tokens in the portal"
        }
        ["-", "org" | "team", ..] => {
            "This server does not support `npm org` and `npm team`: add members and teams in the portal"
        }
        _ => {
            "This server does not support this request: manage members, rights and tokens in the portal, and packages with \
             `npm publish`, `unpublish`, `deprecate`, `dist-tag` and `owner`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn each_response_names_the_alternative() {
        for (path, words) in [
            (&["-", "npm", "v1", "user"][..], "npm profile"),
            (&["-", "npm", "v1", "tokens", "x"], "revoke tokens in the portal"),
            (&["-", "package", "@acme", "lib", "access"], "npm access"),
            (&["-", "org", "acme", "package"], "npm access"),
            (&["-", "team", "acme", "devs", "package"], "npm access"),
            (&["-", "org", "acme", "user"], "npm org"),
            (&["-", "team", "acme", "devs", "user"], "npm team"),
            (&["-", "stage"], "manage members"),
        ] {
            assert!(sentence(path).contains(words), "{path:?}");
        }
    }
}
