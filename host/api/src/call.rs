//! One call, in the order of its checks: header fields, session or API token, the scopes of an API
//! token, then the handler. The handler checks in this order: body, confirmation, permissions that
//! do not depend on an object, existence, rights to the object, state.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Version};
use packhouse_app::App;
use packhouse_app::body_budget::Share;
use packhouse_config::Limits;
use packhouse_identity::{Secret, says_api_token};
use packhouse_wire::catalogue;
use packhouse_wire::client_address::caller;
use packhouse_wire::site::Site;
use packhouse_wire::{request_id, trace};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Span;

use crate::body::CallBody;
use crate::endpoint::{Endpoint, Right};
use crate::error::ApiError;
use crate::error_response::{name_request, raised};
use crate::operations::confirmations::Confirmation;
use crate::operations::{Actor, Caller, CheckedRights, Origin, in_service};
use crate::portal::{self, Visitor};
use crate::presented_credential::PresentedCredential;
use crate::scope;
use crate::second_factor;

/// Call that a handler receives.
pub(crate) struct Call {
    origin: Origin,
    headers: HeaderMap,
    path: HashMap<String, String>,
    query: HashMap<String, String>,
    body: Option<Value>,
    component: Option<ReceivedComponent>,
    form: Vec<(String, String)>,
    actor: Option<Actor>,
    /// Share of the memory for bodies; held until the call ends.
    _share: Share,
}

impl Deref for Call {
    type Target = Origin;

    fn deref(&self) -> &Origin {
        &self.origin
    }
}

/// Bytes of a component. Only one is received at a time.
struct ReceivedComponent {
    bytes: Bytes,
    _turn: SemaphorePermit<'static>,
}

/// Limits the server to one component upload at a time.
static COMPONENTS: Semaphore = Semaphore::const_new(1);

/// Call on its way through the router to its handler.
#[derive(Clone)]
struct Prepared(Arc<Mutex<Option<Call>>>);

impl<S: Sync> FromRequestParts<S> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Call, ApiError> {
        let prepared = parts.extensions.remove::<Prepared>();
        let call =
            prepared.and_then(|Prepared(call)| call.lock().unwrap_or_else(PoisonError::into_inner).take());
        call.ok_or_else(|| ApiError::Internal(anyhow::anyhow!("a handler was called without `call::serve`")))
    }
}

/// State of `serve` for one endpoint.
#[derive(Clone)]
pub(crate) struct EndpointState {
    pub(crate) app: Arc<App>,
    pub(crate) endpoint: Arc<Endpoint>,
}

/// Checks a request, calls the endpoint's handler and builds the response.
pub(crate) async fn serve(
    State(EndpointState { app, endpoint }): State<EndpointState>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let request_id = request_id::next();
    let (mut parts, body) = request.into_parts();
    let (method, version) = (parts.method.clone(), parts.version);
    let mut body = CallBody::new(&parts.headers, body);
    let mut credential = PresentedCredential::default();
    let judged = CheckedRights::default();
    let origin = Origin::new(Arc::clone(&app), address(&parts, &app), request_id.to_string())
        .at(parts.extensions.get::<Site>().cloned());
    let outcome = match prepare(origin, &endpoint, &mut parts, &mut body, &judged, &mut credential).await {
        Ok(ready) => {
            parts.extensions.insert(Prepared(Arc::new(Mutex::new(Some(ready.call)))));
            let answer = raised(next.run(Request::from_parts(parts, Body::empty())).await);
            answer.map(|answer| with_csrf(answer, ready.csrf))
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        credential.count(&app, error);
    }
    let mut answer = match outcome {
        // If a handler forgot to check the right or the confirmation that it declares, its response
        // is withheld.
        Ok(answer) if answer.status().is_success() && !judged.covers(endpoint.right) => {
            ApiError::Internal(anyhow::anyhow!("{} answered without checking its right", endpoint.path))
                .into_answer_at(&endpoint.path, &request_id)
        }
        Ok(answer) if answer.status().is_success() && !judged.is_confirmed(endpoint.confirmation) => {
            ApiError::Internal(anyhow::anyhow!(
                "{} answered without checking its confirmation",
                endpoint.path
            ))
            .into_answer_at(&endpoint.path, &request_id)
        }
        Ok(answer) => answer,
        Err(error) => error.naming_the_part(&app.store).await.into_answer_at(&endpoint.path, &request_id),
    };
    if !body.drain().await && version < Version::HTTP_2 {
        // The unread rest of the body would block the next request on this connection.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    name_request(&mut answer, &request_id);
    let status = answer.status().as_u16();
    let duration_ms = started.elapsed().as_millis() as u64;
    tracing::info!(request.id = %request_id, %method, route = endpoint.path, status, duration_ms, "call");
    count(&endpoint, status, 1);
    let span = Span::current();
    // The route, not the path, because some paths contain secret codes.
    span.record("http.route", endpoint.path.as_str());
    trace::answered(&span, status, &request_id);
    answer
}

/// Adds calls to the endpoint's counter. Call it with 0 to export the counter before the first
/// request.
pub(crate) fn count(endpoint: &Endpoint, status: u16, calls: u64) {
    let (route, method) = (endpoint.path.clone(), endpoint.method.to_string());
    metrics::counter!("packhouse_api_calls_total", "route" => route, "method" => method, "status" => status.to_string())
        .increment(calls);
}

/// Header with the signature of a component; the body has only the component.
const SIGNATURE: &str = "x-plugin-signature";

/// Header that may carry the confirmation instead of the body, because some clients drop the body
/// of a DELETE.
const CONFIRMATION: &str = "x-confirmation-token";

/// Call that passed the checks before its handler, with the CSRF token of a browser session.
struct PreparedCall {
    call: Call,
    csrf: Option<String>,
}

/// Makes the checks before the handler: header fields, session, arrival of the body.
async fn prepare(
    origin: Origin,
    endpoint: &Endpoint,
    parts: &mut Parts,
    body: &mut CallBody,
    judged: &CheckedRights,
    credential: &mut PresentedCredential,
) -> Result<PreparedCall, ApiError> {
    let app = Arc::clone(&origin.app);
    credential.address = origin.address.to_string();
    if !endpoint.works_in_maintenance() {
        in_service(&app)?;
    }
    // Lock-file queries may be larger than other unauthenticated bodies; together they are limited.
    let (limits, signed) =
        (endpoint.limits(*app.live.limits.get()), endpoint.right != Right::Anyone || endpoint.is_of_osv());
    if endpoint.is_of_osv() {
        body.assume_json();
    } else if endpoint.is_of_scim() {
        body.accept_scim();
    }
    let is_component = endpoint.takes_component && body.is_component()?;
    if is_component {
        body.check_component()?;
    } else if endpoint.takes_form {
        body.check_form(signed, &limits)?;
    } else {
        body.check(endpoint.requires_body, signed, &limits)?;
    }
    credential.is_present = parts.headers.contains_key(AUTHORIZATION) || parts.headers.contains_key(COOKIE);
    let session = match endpoint.right {
        Right::Anyone => None,
        _ => Some(session(&app, parts).await?),
    };
    credential.caller = session.as_ref().map(|Session { caller, .. }| {
        (caller.member.organization, caller.name().to_owned(), caller.credential.name())
    });
    if !endpoint.works_read_only() && *app.live.read_only.get() {
        return Err(ApiError::from(&catalogue::READ_ONLY));
    }
    if let Some(Session { caller, .. }) = &session {
        caller.count(&app)?;
        scope::judge(caller, endpoint)?;
        second_factor::judge(&app, caller, endpoint).await?;
    }
    // The body is read only now, after the checks: an unauthenticated body is not read, or only up
    // to the small limit.
    let mut share = app.bodies.share(origin.address);
    let (mut json, mut component, mut form) = (None, None, Vec::new());
    if is_component {
        component = Some(receive_component(session.as_ref(), endpoint, body, &limits).await?);
    } else if endpoint.takes_form {
        (form, share) = body.pairs(signed, &limits, share).await?;
    } else {
        (json, share) = body.json(endpoint.requires_body, signed, &limits, share).await?;
    }
    let path = path(parts).await?;
    let query = query(parts)?;
    let (caller, csrf) = session.map(|session| (session.caller, session.csrf)).unzip();
    let call = Call {
        path,
        query,
        headers: std::mem::take(&mut parts.headers),
        body: json,
        component,
        form,
        actor: caller.map(|caller| Actor::new(origin.clone(), caller, judged.clone())),
        _share: share,
        origin,
    };
    Ok(PreparedCall { call, csrf: csrf.flatten() })
}

/// Receives a component. It is large, so the caller must hold the endpoint's permission, and only
/// one is received at a time.
async fn receive_component(
    session: Option<&Session>,
    endpoint: &Endpoint,
    body: &mut CallBody,
    limits: &Limits,
) -> Result<ReceivedComponent, ApiError> {
    if let Right::Holds(permission) = endpoint.right
        && !session.is_some_and(|session| session.caller.permissions.holds(permission))
    {
        return Err(ApiError::with(&catalogue::INSUFFICIENT_PERMISSIONS, permission.name()));
    }
    let turn = tokio::time::timeout(limits.body_idle, COMPONENTS.acquire()).await;
    let turn = turn.ok().and_then(Result::ok).ok_or(ApiError::from(&catalogue::SERVER_BUSY))?;
    Ok(ReceivedComponent { bytes: body.component(limits).await?, _turn: turn })
}

fn with_csrf(mut answer: Response, csrf: Option<String>) -> Response {
    if let Some(csrf) = csrf.and_then(|csrf| HeaderValue::try_from(csrf).ok()) {
        answer.headers_mut().insert(portal::CSRF, csrf);
    }
    answer
}

struct Session {
    caller: Caller,
    /// CSRF token; only for a browser session.
    csrf: Option<String>,
}

/// Finds the session or the API token of the request. `Authorization` takes precedence over a
/// cookie.
async fn session(app: &App, parts: &Parts) -> Result<Session, ApiError> {
    let unknown = || ApiError::from(&catalogue::NOT_SIGNED_IN);
    if parts.headers.contains_key(AUTHORIZATION) {
        let presented = bearer(&parts.headers).ok_or_else(unknown)?;
        let caller = if says_api_token(presented) {
            Caller::of_api_token(app, presented).await?
        } else {
            Caller::of(app, presented).await?
        };
        return Ok(Session { caller: caller.ok_or_else(unknown)?, csrf: None });
    }
    let visitor = Visitor::of(app, &parts.headers).await?.ok_or_else(unknown)?;
    if !parts.method.is_safe() {
        let given = parts.headers.get(portal::CSRF).and_then(|field| field.to_str().ok());
        visitor.check(app, &parts.headers, given.unwrap_or_default())?;
    }
    let csrf = Some(visitor.csrf());
    Ok(Session { caller: visitor.caller, csrf })
}

/// Secret of the request's only `Authorization` header, if the header has the scheme Bearer.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let field = fields.next()?.to_str().ok()?;
    let (scheme, secret) = field.split_once(' ')?;
    (fields.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| secret.trim())
}

/// Path parameters, percent-decoded once. A parameter that is not valid UTF-8 matches no resource.
async fn path(parts: &mut Parts) -> Result<HashMap<String, String>, ApiError> {
    let parameters = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| ApiError::from(&catalogue::NOT_FOUND))?;
    Ok(parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn query(parts: &Parts) -> Result<HashMap<String, String>, ApiError> {
    let mut query = HashMap::new();
    for (name, value) in url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
        if query.insert(name.to_string(), value.into_owned()).is_some() {
            return Err(ApiError::invalid(&format!("The query contains `{name}` more than once.")));
        }
    }
    Ok(query)
}

/// Client address of a request.
pub fn address(parts: &Parts, app: &App) -> IpAddr {
    let peer = parts.extensions.get::<crate::Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    caller(peer, &parts.headers, &app.live.trusted_proxies.get())
}

impl Call {
    /// Component in the body, if the body is one.
    pub(crate) fn component(&self) -> Option<Bytes> {
        self.component.as_ref().map(|component| component.bytes.clone())
    }

    /// Signature of the component in the body, if there is one.
    pub(crate) fn signature(&self) -> Result<Option<String>, ApiError> {
        let wrong = || ApiError::invalid("`X-Plugin-Signature` must be sent once, in base64.");
        let mut fields = self.headers.get_all(SIGNATURE).iter();
        let field = fields.next().map(|field| field.to_str().map(ToOwned::to_owned));
        match (field.transpose(), fields.next()) {
            (Ok(signature), None) => Ok(signature),
            _ => Err(wrong()),
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Origin of the call, without the session.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the signed-in caller. Only endpoints for anyone have none.
    pub(crate) fn actor(&self) -> Result<&Actor, ApiError> {
        self.actor.as_ref().ok_or_else(|| ApiError::from(&catalogue::NOT_SIGNED_IN))
    }

    /// Deserializes the body. 400 `invalid_request` for an unknown or missing field, and for a
    /// list: serde would read a list as the values in field order, and an empty list as an empty
    /// object.
    pub(crate) fn body<T: DeserializeOwned>(&mut self) -> Result<T, ApiError> {
        let body = self.body.take().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        if body.is_array() {
            return Err(ApiError::invalid(
                "The request body is invalid: it is a list, but an object is expected.",
            ));
        }
        serde_json::from_value(body)
            .map_err(|error| ApiError::invalid(&format!("The request body is invalid: {error}.")))
    }

    /// Values of a form's field, in order.
    pub(crate) fn form(&self, name: &str) -> Vec<&str> {
        self.form.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Path parameter; empty if absent.
    pub(crate) fn path(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// 400 `invalid_request` if the query has any other parameter.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.query.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(ApiError::invalid(&format!("This endpoint has no parameter `{name}`."))),
            None => Ok(()),
        }
    }

    /// Confirmation of the call: from the body's field, otherwise from the header.
    pub(crate) fn confirmation(&self, field: Option<&Value>) -> Confirmation {
        let header = self.headers.get(CONFIRMATION).map(|field| field.to_str().unwrap_or_default());
        match (field, header) {
            (Some(Value::String(token)), _) => Confirmation::Token(Secret::new(token.as_str())),
            (None | Some(Value::Null), Some(token)) => Confirmation::Token(Secret::new(token)),
            (None | Some(Value::Null), None) => Confirmation::Absent,
            (Some(_), _) => Confirmation::Malformed,
        }
    }
}
