//! Requests to pages for members: authentication and receipt of forms. A visitor without a session
//! is redirected to the sign-in and back. The portal saves submitted fields until the member is
//! back.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::HeaderValue;
use http::header::SET_COOKIE;
use http::request::Parts;
use packhouse_api::error::ApiError;
use packhouse_api::operations::{Actor, CheckedRights, Origin, in_service, second_factor};
use packhouse_api::portal::Visitor;
use packhouse_api::{address, forms};
use packhouse_store::Refusal;
use packhouse_wire::site::Site;
use packhouse_wire::{catalogue, request_id};

use crate::fields::Fields;
use crate::page_context::{PageContext, see_other};
use crate::{PageResult, Portal, draft, fault, policy};

/// How long a submission is recorded, in ms. One day is longer than any session, so no form can be
/// submitted after its record has expired.
const SUBMISSION_RECORD_MS: i64 = 24 * 60 * 60 * 1000;

/// Routes GET to a page for members.
pub(crate) fn page<F, Fut>(show: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<PageContext>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = PageResult> + Send + 'static,
{
    get(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        match build_context(&portal, request, false).await {
            Ok(ctx) => respond(ctx, show).await,
            Err(response) => response,
        }
    })
}

/// Routes POST to the form handler of a page for members.
pub(crate) fn form<F, Fut>(act: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<PageContext>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = PageResult> + Send + 'static,
{
    post(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        let ctx = match build_context(&portal, request, true).await {
            Ok(ctx) => ctx,
            Err(response) => return response,
        };
        if let Err(error) = policy::may_change(&portal.app, &ctx.path) {
            return respond(ctx, |_| async { Err(error) }).await;
        }
        match ctx.form.get("once").map(|once| ctx.form_key(once)) {
            None => respond(ctx, act).await,
            Some(key) => {
                portal
                    .form_dedup
                    .once(key, async move { respond(ctx, move |ctx| act_once(ctx, key, act)).await })
                    .await
            }
        }
    })
}

/// Runs the form handler unless the form was submitted before, to this or another server.
async fn act_once<F, Fut>(ctx: Arc<PageContext>, key: [u8; 32], act: F) -> PageResult
where
    F: FnOnce(Arc<PageContext>) -> Fut,
    Fut: Future<Output = PageResult>,
{
    if ctx.actor.app.store.spend_sso_state(&key, ctx.actor.now + SUBMISSION_RECORD_MS).await? {
        act(ctx).await
    } else {
        Ok(fault::already_submitted(&ctx))
    }
}

async fn respond<F, Fut>(ctx: Arc<PageContext>, handler: F) -> Response
where
    F: FnOnce(Arc<PageContext>) -> Fut,
    Fut: Future<Output = PageResult>,
{
    let answer = match handler(Arc::clone(&ctx)).await {
        Ok(answer) => answer,
        Err(error) => {
            let error = error.naming_the_part(&ctx.actor.app.store).await;
            count(&ctx, &error);
            fault::error_page(&ctx, &error)
        }
    };
    with_request_id(answer, &ctx.actor.request_id)
}

/// Adds the request id to a response.
pub(crate) fn with_request_id(mut answer: Response, id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(id) {
        answer.headers_mut().insert("x-request-id", id);
    }
    answer
}

/// Counts a refusal for the audit log, like the API does.
pub(crate) fn count(ctx: &PageContext, error: &ApiError) {
    let Some(code) = error.code().filter(|code| matches!(code.status, 401 | 403 | 429)) else { return };
    let actor = &ctx.actor;
    let refusal = Refusal {
        organization: Some(actor.organization()),
        actor: actor.member().email.clone(),
        credential: actor.credential().name(),
        address: actor.address.to_string(),
        code: code.code.to_owned(),
    };
    actor.app.store.refused(refusal, actor.now);
}

/// Sorts errors of a form. `Ok` is a refusal to show together with the form again; it is counted.
/// `Err` is any other error, which gets its own page.
pub(crate) fn form_error(ctx: &PageContext, error: ApiError) -> Result<ApiError, ApiError> {
    match error.code().map(|code| code.status) {
        Some(400 | 401 | 403 | 405 | 409 | 422 | 424 | 429) => {
            count(ctx, &error);
            Ok(error)
        }
        _ => Err(error),
    }
}

/// Returns the path parameters, percent-decoded once.
pub(crate) async fn parameters(parts: &mut Parts) -> HashMap<String, String> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.ok();
    let pairs = parameters.iter().flatten().map(|(name, value)| (name.to_owned(), value.to_owned()));
    pairs.collect()
}

/// Returns the client's address and the site of a request.
pub(crate) fn origin(portal: &Portal, parts: &Parts) -> Origin {
    Origin::new(Arc::clone(&portal.app), address(parts, &portal.app), request_id::next().to_string())
        .at(parts.extensions.get::<Site>().cloned())
}

/// Authenticates a request and reads its form. The error is the response for a visitor without a
/// session, for one who must set up a second factor first, or for a form that did not come from
/// this host.
async fn build_context(
    portal: &Arc<Portal>,
    request: Request,
    sends: bool,
) -> Result<Arc<PageContext>, Response> {
    let (mut parts, body) = request.into_parts();
    let origin = origin(portal, &parts);
    let id = origin.request_id.clone();
    let alone = |error: ApiError| with_request_id(fault::guest_error_page(&error), &id);
    let app = Arc::clone(&portal.app);
    in_service(&app).map_err(alone)?;
    let named = parameters(&mut parts).await;
    let query = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
    let path = parts.uri.path().to_owned();
    let visitor = match Visitor::of(&app, &parts.headers).await {
        Ok(visitor) => visitor,
        Err(error) => return Err(alone(error.naming_the_part(&app.store).await)),
    };
    if let Some(visitor) = &visitor {
        visitor.caller.count(&app).map_err(alone)?;
    }
    let mut form = Fields::default();
    if sends {
        let signed = visitor.is_some();
        let received = forms::receive(&app, origin.address, &parts.headers, body, signed).await;
        form = Fields::read(&received.map_err(alone)?.bytes);
        if let Some(visitor) = &visitor {
            policy::check_member_form(&app, visitor, &parts.headers, form.text("csrf")).map_err(alone)?;
        } else if !policy::is_own(&app, &parts.headers) {
            return Err(alone(ApiError::from(&catalogue::CSRF_REFUSED)));
        }
    } else if query.has("draft") || query.has("confirmed") {
        form = draft::load(&app, &parts.headers, &path).unwrap_or_default();
    }
    let Some(visitor) = visitor else { return Err(to_sign_in(portal, &parts, sends.then_some(&form))) };
    if !policy::works_without_second_factor(&path, sends) {
        match second_factor::is_missing(&app, &visitor.caller).await {
            Ok(false) => {}
            Ok(true) if sends => return Err(alone(ApiError::from(&catalogue::SECOND_FACTOR_NOT_SET_UP))),
            Ok(true) => return Err(with_request_id(see_other(policy::SECOND_FACTOR), &id)),
            Err(error) => return Err(alone(error.naming_the_part(&app.store).await)),
        }
    }
    let csrf = visitor.csrf();
    let actor = Actor::new(origin, visitor.caller, CheckedRights::default());
    let headers = parts.headers;
    Ok(Arc::new(PageContext { portal: Arc::clone(portal), actor, csrf, path, named, query, form, headers }))
}

/// Redirects to the sign-in, which leads back to this page with the submitted fields.
fn to_sign_in(portal: &Portal, parts: &Parts, form: Option<&Fields>) -> Response {
    let path = parts.uri.path();
    let back = match (form, parts.uri.query()) {
        (Some(_), _) => format!("{path}?draft=1"),
        (None, Some(query)) => format!("{path}?{query}"),
        (None, None) => path.to_owned(),
    };
    let mut answer = see_other(&policy::sign_in(&back));
    let saved = form.and_then(|form| draft::save(&portal.app, path, form).ok().flatten());
    if let Some(cookie) = saved {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}
