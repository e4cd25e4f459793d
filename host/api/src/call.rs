//! One call, in the order of judgement: what the transport says, the session, and then the handler, which judges body,
//! confirmation, permissions that no object decides, existence, rights in what was found, and state, in this order.

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
use packhouse_identity::Secret;
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
use crate::operations::{Actor, Caller, Judged, Origin, in_service, session_name};
use crate::portal::{self, Visitor};
use crate::shown::Shown;

/// A call as a handler gets it.
pub(crate) struct Call {
    origin: Origin,
    headers: HeaderMap,
    path: HashMap<String, String>,
    query: HashMap<String, String>,
    body: Option<Value>,
    component: Option<Component>,
    form: Vec<(String, String)>,
    actor: Option<Actor>,
    /// What the body takes of the memory for bodies, as long as the call lasts.
    _share: Share,
}

impl Deref for Call {
    type Target = Origin;

    fn deref(&self) -> &Origin {
        &self.origin
    }
}

/// The bytes of a component, of which one is received at a time.
struct Component {
    bytes: Bytes,
    _turn: SemaphorePermit<'static>,
}

/// Turns to send a component.
static COMPONENTS: Semaphore = Semaphore::const_new(1);

/// A call on its way through the router to its handler.
#[derive(Clone)]
struct Prepared(Arc<Mutex<Option<Call>>>);

impl<S: Sync> FromRequestParts<S> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Call, ApiError> {
        let prepared = parts.extensions.remove::<Prepared>();
        let call =
            prepared.and_then(|Prepared(call)| call.lock().unwrap_or_else(PoisonError::into_inner).take());
        call.ok_or_else(|| ApiError::Internal(anyhow::anyhow!("a handler was reached without `call::serve`")))
    }
}

/// What `serve` is given for each endpoint.
#[derive(Clone)]
pub(crate) struct Served {
    /// The state of the program.
    pub(crate) app: Arc<App>,
    /// The endpoint.
    pub(crate) endpoint: Arc<Endpoint>,
}

/// Takes a request through its endpoint's handler to its answer.
pub(crate) async fn serve(
    State(Served { app, endpoint }): State<Served>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let request_id = request_id::next();
    let (mut parts, body) = request.into_parts();
    let (method, version) = (parts.method.clone(), parts.version);
    let mut body = CallBody::new(&parts.headers, body);
    let mut shown = Shown::default();
    let judged = Judged::default();
    let origin = Origin::new(Arc::clone(&app), address(&parts, &app), request_id.to_string())
        .at(parts.extensions.get::<Site>().cloned());
    let outcome = match prepare(origin, &endpoint, &mut parts, &mut body, &judged, &mut shown).await {
        Ok(ready) => {
            parts.extensions.insert(Prepared(Arc::new(Mutex::new(Some(ready.call)))));
            let answer = raised(next.run(Request::from_parts(parts, Body::empty())).await);
            answer.map(|answer| with_csrf(answer, ready.csrf))
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        shown.count(&app, error);
    }
    let mut answer = match outcome {
        // A handler that forgot to ask for the right or the confirmation that it names gives nothing away.
        Ok(answer) if answer.status().is_success() && !judged.covers(endpoint.right) => {
            ApiError::Internal(anyhow::anyhow!("{} answered without judging its right", endpoint.path))
                .into_answer(&request_id)
        }
        Ok(answer) if answer.status().is_success() && !judged.is_confirmed(endpoint.confirmation) => {
            ApiError::Internal(anyhow::anyhow!("{} answered without judging its confirmation", endpoint.path))
                .into_answer(&request_id)
        }
        Ok(answer) => answer,
        Err(error) => error.naming_the_part(&app.store).await.into_answer(&request_id),
    };
    if !body.drain().await && version < Version::HTTP_2 {
        // What is left of the body is in the way of the next request.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    name_request(&mut answer, &request_id);
    let status = answer.status().as_u16();
    let duration_ms = started.elapsed().as_millis() as u64;
    tracing::info!(request.id = %request_id, %method, route = endpoint.path, status, duration_ms, "call");
    count(&endpoint, status, 1);
    let span = Span::current();
    // The route and not the path: codes stand in some.
    span.record("http.route", endpoint.path.as_str());
    trace::answered(&span, status, &request_id);
    answer
}

/// Counts calls of an endpoint. With none, it makes the endpoint known to whoever reads the metrics.
pub(crate) fn count(endpoint: &Endpoint, status: u16, calls: u64) {
    let (route, method) = (endpoint.path.clone(), endpoint.method.to_string());
    metrics::counter!("packhouse_api_calls_total", "route" => route, "method" => method, "status" => status.to_string())
        .increment(calls);
}

/// Where the signature of a component stands, whose body is the component alone.
const SIGNATURE: &str = "x-plugin-signature";

/// Where a confirmation may stand instead of the body: some clients drop the body of a DELETE.
const CONFIRMATION: &str = "x-confirmation-token";

/// A call that may go to its handler, and the CSRF token of a browser's session.
struct Ready {
    call: Call,
    csrf: Option<String>,
}

/// What is judged before the handler: the transport, the session, the body's arrival.
async fn prepare(
    origin: Origin,
    endpoint: &Endpoint,
    parts: &mut Parts,
    body: &mut CallBody,
    judged: &Judged,
    shown: &mut Shown,
) -> Result<Ready, ApiError> {
    let app = Arc::clone(&origin.app);
    shown.address = origin.address.to_string();
    if !endpoint.is_for_operators() {
        in_service(&app)?;
    }
    // Questions about a whole lock file are larger than what is read of strangers elsewhere; all their bodies together are bounded.
    let (limits, signed) =
        (endpoint.limits(*app.live.limits.get()), endpoint.right != Right::Anyone || endpoint.is_of_osv());
    if endpoint.is_of_osv() {
        body.assume_json();
    }
    let is_component = endpoint.takes_component && body.is_component()?;
    if is_component {
        body.check_component()?;
    } else if endpoint.takes_form {
        body.check_form(signed, &limits)?;
    } else {
        body.check(endpoint.wants_body, signed, &limits)?;
    }
    shown.anything = parts.headers.contains_key(AUTHORIZATION) || parts.headers.contains_key(COOKIE);
    let session = match endpoint.right {
        Right::Anyone => None,
        _ => Some(session(&app, parts).await?),
    };
    shown.caller = session.as_ref().map(|Session { caller, .. }| {
        (caller.member.organization, caller.member.email.clone(), session_name(&caller.session))
    });
    if !endpoint.goes_on() && *app.live.read_only.get() {
        return Err(ApiError::from(&catalogue::READ_ONLY));
    }
    if let Some(Session { caller, .. }) = &session {
        caller.count(&app)?;
    }
    // Only now: a stranger's body is not read, and who reads a large one here is known by then.
    let mut share = app.bodies.share(origin.address);
    let (mut json, mut component, mut form) = (None, None, Vec::new());
    if is_component {
        component = Some(receive_component(session.as_ref(), endpoint, body, &limits).await?);
    } else if endpoint.takes_form {
        (form, share) = body.pairs(signed, &limits, share).await?;
    } else {
        (json, share) = body.json(endpoint.wants_body, signed, &limits, share).await?;
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
    Ok(Ready { call, csrf: csrf.flatten() })
}

/// A component is large, so it is read only of somebody who holds the right that the endpoint needs, and one at a time.
async fn receive_component(
    session: Option<&Session>,
    endpoint: &Endpoint,
    body: &mut CallBody,
    limits: &Limits,
) -> Result<Component, ApiError> {
    if let Right::Holds(permission) = endpoint.right
        && !session.is_some_and(|session| session.caller.permissions.holds(permission))
    {
        return Err(ApiError::with(&catalogue::INSUFFICIENT_PERMISSIONS, permission.name()));
    }
    let turn = tokio::time::timeout(limits.body_idle, COMPONENTS.acquire()).await;
    let turn = turn.ok().and_then(Result::ok).ok_or(ApiError::from(&catalogue::SERVER_BUSY))?;
    Ok(Component { bytes: body.component(limits).await?, _turn: turn })
}

fn with_csrf(mut answer: Response, csrf: Option<String>) -> Response {
    if let Some(csrf) = csrf.and_then(|csrf| HeaderValue::try_from(csrf).ok()) {
        answer.headers_mut().insert(portal::CSRF, csrf);
    }
    answer
}

/// Who calls.
struct Session {
    caller: Caller,
    /// Of a browser's session.
    csrf: Option<String>,
}

/// Who calls. `Authorization` goes before a cookie.
async fn session(app: &App, parts: &Parts) -> Result<Session, ApiError> {
    let unknown = || ApiError::from(&catalogue::NOT_SIGNED_IN);
    if parts.headers.contains_key(AUTHORIZATION) {
        let presented = bearer(&parts.headers).ok_or_else(unknown)?;
        let caller = Caller::of(app, presented).await?.ok_or_else(unknown)?;
        return Ok(Session { caller, csrf: None });
    }
    let visitor = Visitor::of(app, &parts.headers).await?.ok_or_else(unknown)?;
    if !parts.method.is_safe() {
        let given = parts.headers.get(portal::CSRF).and_then(|field| field.to_str().ok());
        visitor.check(app, &parts.headers, given.unwrap_or_default())?;
    }
    let csrf = Some(visitor.csrf());
    Ok(Session { caller: visitor.caller, csrf })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let field = fields.next()?.to_str().ok()?;
    let (scheme, secret) = field.split_once(' ')?;
    (fields.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| secret.trim())
}

/// The path's parameters, percent-decoded once. One that is not UTF-8 names nothing.
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
            return Err(ApiError::invalid(&format!("`{name}` stands twice in the query.")));
        }
    }
    Ok(query)
}

/// From which address a request comes.
pub fn address(parts: &Parts, app: &App) -> IpAddr {
    let peer = parts.extensions.get::<crate::Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    caller(peer, &parts.headers, &app.live.trusted_proxies.get())
}

impl Call {
    /// The component that was sent, where the body is one.
    pub(crate) fn component(&self) -> Option<Bytes> {
        self.component.as_ref().map(|component| component.bytes.clone())
    }

    /// The signature of the component that was sent, where there is one.
    pub(crate) fn signature(&self) -> Result<Option<String>, ApiError> {
        let wrong = || ApiError::invalid("`X-Plugin-Signature` is not right: it stands once, and is base64.");
        let mut fields = self.headers.get_all(SIGNATURE).iter();
        let field = fields.next().map(|field| field.to_str().map(ToOwned::to_owned));
        match (field.transpose(), fields.next()) {
            (Ok(signature), None) => Ok(signature),
            _ => Err(wrong()),
        }
    }

    /// The request's header fields.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// From where the call comes.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Who calls. Only an endpoint for anyone has nobody.
    pub(crate) fn actor(&self) -> Result<&Actor, ApiError> {
        self.actor.as_ref().ok_or_else(|| ApiError::from(&catalogue::NOT_SIGNED_IN))
    }

    /// The body in the shape of its structure; 400 `invalid_request` for an unknown or missing field, and for a list: serde would take
    /// its values for the fields in their order, and an empty one for an object with none.
    pub(crate) fn body<T: DeserializeOwned>(&mut self) -> Result<T, ApiError> {
        let body = self.body.take().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        if body.is_array() {
            return Err(ApiError::invalid("The body is not right: it is a list, where an object belongs."));
        }
        serde_json::from_value(body)
            .map_err(|error| ApiError::invalid(&format!("The body is not right: {error}.")))
    }

    /// The values of a form's field, in order.
    pub(crate) fn form(&self, name: &str) -> Vec<&str> {
        self.form.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// A parameter of the path.
    pub(crate) fn path(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// A parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// 400 `invalid_request` where the query has another parameter than these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.query.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(ApiError::invalid(&format!("There is no parameter `{name}` here."))),
            None => Ok(()),
        }
    }

    /// The confirmation that the call carries: in the body's field, or else in the header.
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
