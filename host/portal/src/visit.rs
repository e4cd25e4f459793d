//! Who is at a page, and what came along: pages of members. Whoever has no session is led to the sign-in and back; what was filled in
//! goes along.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::HeaderValue;
use http::header::SET_COOKIE;
use http::request::Parts;
use packhouse_api::error::ApiError;
use packhouse_api::operations::{Actor, Judged, Origin, in_service, session_name};
use packhouse_api::portal::Visitor;
use packhouse_api::{address, forms};
use packhouse_store::Refusal;
use packhouse_wire::request_id;
use packhouse_wire::site::Site;

use crate::fields::Fields;
use crate::seat::{Seat, see_other};
use crate::{Answer, Portal, draft, fault, policy};

/// For how long it is noted that a form was sent: a day in ms, as no page is older than its session.
const NOTED_MS: i64 = 24 * 60 * 60 * 1000;

/// A page for members.
pub(crate) fn page<F, Fut>(show: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<Seat>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    get(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        match take_seat(&portal, request, false).await {
            Ok(seat) => answered(seat, show).await,
            Err(response) => response,
        }
    })
}

/// What a page's forms do.
pub(crate) fn form<F, Fut>(act: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<Seat>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    post(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        let seat = match take_seat(&portal, request, true).await {
            Ok(seat) => seat,
            Err(response) => return response,
        };
        if let Err(error) = policy::may_change(&portal.app, &seat.path) {
            return answered(seat, |_| async { Err(error) }).await;
        }
        match seat.form.get("once").map(|once| seat.form_key(once)) {
            None => answered(seat, act).await,
            Some(key) => {
                portal
                    .sent
                    .once(key, async move { answered(seat, move |seat| first(seat, key, act)).await })
                    .await
            }
        }
    })
}

/// The form's deed, unless it was sent before, wherever that was.
async fn first<F, Fut>(seat: Arc<Seat>, key: [u8; 32], act: F) -> Answer
where
    F: FnOnce(Arc<Seat>) -> Fut,
    Fut: Future<Output = Answer>,
{
    if seat.actor.app.store.spend_sso_state(&key, seat.actor.now + NOTED_MS).await? {
        act(seat).await
    } else {
        Ok(fault::sent_before(&seat))
    }
}

async fn answered<F, Fut>(seat: Arc<Seat>, handler: F) -> Response
where
    F: FnOnce(Arc<Seat>) -> Fut,
    Fut: Future<Output = Answer>,
{
    let answer = match handler(Arc::clone(&seat)).await {
        Ok(answer) => answer,
        Err(error) => {
            let error = error.naming_the_part(&seat.actor.app.store).await;
            count(&seat, &error);
            fault::at(&seat, &error)
        }
    };
    named(answer, &seat.actor.request_id)
}

/// Puts the request's id into its answer.
pub(crate) fn named(mut answer: Response, id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(id) {
        answer.headers_mut().insert("x-request-id", id);
    }
    answer
}

/// Counts a refusal for the audit log, as a call's is.
pub(crate) fn count(seat: &Seat, error: &ApiError) {
    let Some(code) = error.code().filter(|code| matches!(code.status, 401 | 403 | 429)) else { return };
    let actor = &seat.actor;
    let refusal = Refusal {
        organization: Some(actor.organization()),
        actor: actor.member().email.clone(),
        credential: session_name(actor.session()),
        address: actor.address.to_string(),
        code: code.code.to_owned(),
    };
    actor.app.store.refused(refusal, actor.now);
}

/// A refusal that a form can be shown again with, counted; any other, and what failed here, is a page of its own.
pub(crate) fn wrong(seat: &Seat, error: ApiError) -> Result<ApiError, ApiError> {
    match error.code().map(|code| code.status) {
        Some(400 | 401 | 403 | 405 | 409 | 422 | 424 | 429) => {
            count(seat, &error);
            Ok(error)
        }
        _ => Err(error),
    }
}

/// The path's parameters, percent-decoded once.
pub(crate) async fn parameters(parts: &mut Parts) -> HashMap<String, String> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.ok();
    let pairs = parameters.iter().flatten().map(|(name, value)| (name.to_owned(), value.to_owned()));
    pairs.collect()
}

/// Where the request comes from.
pub(crate) fn origin(portal: &Portal, parts: &Parts) -> Origin {
    Origin::new(Arc::clone(&portal.app), address(parts, &portal.app), request_id::next().to_string())
        .at(parts.extensions.get::<Site>().cloned())
}

/// Who sits there, with what came along; or the answer for who has no session, and for a form that is not this host's.
async fn take_seat(portal: &Arc<Portal>, request: Request, sends: bool) -> Result<Arc<Seat>, Response> {
    let (mut parts, body) = request.into_parts();
    let origin = origin(portal, &parts);
    let id = origin.request_id.clone();
    let alone = |error: ApiError| named(fault::alone(&error), &id);
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
            policy::judge(&app, visitor, &parts.headers, form.text("csrf")).map_err(alone)?;
        } else if !policy::is_own(&app, &parts.headers) {
            return Err(alone(ApiError::from(&packhouse_wire::catalogue::CSRF_REFUSED)));
        }
    } else if query.has("draft") || query.has("confirmed") {
        form = draft::kept(&app, &parts.headers, &path).unwrap_or_default();
    }
    let Some(visitor) = visitor else { return Err(to_sign_in(portal, &parts, sends.then_some(&form))) };
    let csrf = visitor.csrf();
    let actor = Actor::new(origin, visitor.caller, Judged::default());
    let headers = parts.headers;
    Ok(Arc::new(Seat { portal: Arc::clone(portal), actor, csrf, path, named, query, form, headers }))
}

/// To the sign-in, and back to this page; with what was filled in there.
fn to_sign_in(portal: &Portal, parts: &Parts, form: Option<&Fields>) -> Response {
    let path = parts.uri.path();
    let back = match (form, parts.uri.query()) {
        (Some(_), _) => format!("{path}?draft=1"),
        (None, Some(query)) => format!("{path}?{query}"),
        (None, None) => path.to_owned(),
    };
    let mut answer = see_other(&policy::sign_in(&back));
    let kept = form.and_then(|form| draft::keep(&portal.app, path, form).ok().flatten());
    if let Some(cookie) = kept {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}
