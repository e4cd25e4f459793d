//! The caller's account and tokens. No secret reaches the plugin: the host replaces the secrets
//! that clients send, and it inserts new secrets into responses itself.

use crate::not_offered;
use packhouse_sdk::{Context, Failure, LoginState, Params, Request, Response, Timestamp};
use serde_json::{Value, json};

/// `GET /`: confirms that the address is right and that the credential works.
pub(crate) fn root(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(Response::json(&json!({}))?.revalidate())
}

pub(crate) fn ping(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(Response::json(&json!({}))?.revalidate())
}

pub(crate) fn whoami(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let username = request.caller().ok_or_else(anonymous)?;
    Ok(no_store(Response::json(&json!({"username": username}))?))
}

pub(crate) fn user(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let name = request.caller().ok_or_else(anonymous)?;
    let email = if name.contains('@') { name.as_str() } else { "" };
    Ok(no_store(Response::json(
        &json!({"name": name, "email": email, "email_verified": true, "tfa": false}),
    )?))
}

/// `-/user/org.couchdb.user:NAME`, which `npm owner add` reads first. The response is the same for
/// all names, so that it does not reveal which members exist.
pub(crate) fn named_user(_cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let id = params.segment("user");
    let name = id.strip_prefix("org.couchdb.user:").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| not_offered::failure(&request.path))?;
    let email = if name.contains('@') { name } else { "" };
    Ok(no_store(Response::json(&json!({"_id": id, "name": name, "email": email}))?))
}

/// Plain `npm login`: returns the address of a sign-in page for the user, and an address that the
/// client polls.
pub(crate) fn begin_login(
    cx: &Context,
    request: &Request,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    let login = cx.identity().begin_login()?;
    let done = request.link(&format!("-/v1/login/{}", login.id));
    Ok(no_store(Response::json(&json!({"loginUrl": login.url, "doneUrl": done}))?))
}

pub(crate) fn finish_login(
    cx: &Context,
    _request: &Request,
    params: &Params<'_>,
) -> Result<Response, Failure> {
    match cx.identity().finish_login(params.segment("id"))? {
        LoginState::Waiting(seconds) => {
            let response = Response { status: 202, ..Response::json(&json!({}))? };
            Ok(no_store(response.header("retry-after", seconds.to_string())))
        }
        LoginState::Granted(token) => Ok(no_store(Response::json(&json!({"token": token}))?)),
        LoginState::Gone => {
            Err(Failure::not_found("This sign-in has expired or was finished already; run `npm login` again"))
        }
    }
}

/// `npm login --auth-type=legacy` and `yarn login`: always refused. The body contains a password,
/// so the plugin does not read it.
pub(crate) fn legacy_login(
    _cx: &Context,
    _request: &Request,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    let text = "Sign-in with a password is not supported: use plain `npm login` or `pnpm login`; for yarn and bun, \
                create a token in the portal and write it to .yarnrc.yml (npmAuthToken) or .npmrc (_authToken)";
    Err(Failure::new(410, "LEGACY_NPM_LOGIN_DISABLED", text))
}

/// `npm token create`: always refused.
pub(crate) fn create_token(
    _cx: &Context,
    _request: &Request,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    let text = "`npm token create` is not supported; create the token in the portal";
    Err(Failure::new(410, "NPM_CLI_TOKEN_CREATE_DISABLED", text))
}

/// `npm token list`. Leaves out the member `cidr_whitelist`: tokens are not bound to client
/// addresses, and clients would show even an empty list.
pub(crate) fn tokens(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    request.caller().ok_or_else(anonymous)?;
    let tokens = cx.identity().tokens()?;
    let written = |ms: u64| Timestamp::from_ms(ms).to_rfc3339();
    let objects: Vec<Value> = tokens
        .into_iter()
        .map(|token| {
            json!({
                "key": token.id, "token": token.hint, "name": token.name,
                "readonly": !token.scope.iter().any(|scope| scope == "write"),
                "created": written(token.created), "updated": written(token.created),
                "expires": token.expires.map(written),
            })
        })
        .collect();
    let total = objects.len();
    Ok(no_store(Response::json(&json!({"objects": objects, "total": total, "urls": {}}))?))
}

/// `npm token revoke`.
pub(crate) fn revoke_token(
    cx: &Context,
    _request: &Request,
    params: &Params<'_>,
) -> Result<Response, Failure> {
    revoke(cx, params.segment("token"))
}

/// `npm logout`. The client sends the token itself, and the host replaces it with the token's id.
pub(crate) fn log_out(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    revoke(cx, params.segment("token"))
}

fn revoke(cx: &Context, id: &str) -> Result<Response, Failure> {
    if cx.identity().revoke(id)? {
        Ok(no_store(Response::json(&json!({"ok": true}))?))
    } else {
        Err(Failure::not_found("You have no token with this id"))
    }
}

fn anonymous() -> Failure {
    Failure::new(401, "unauthorized", "The request has no credential: send a token as `_authToken`")
}

fn no_store(response: Response) -> Response {
    response.header("cache-control", "no-store")
}
