//! One call, in the order of judgement: what the transport says, the session, and then the handler, which judges body,
//! confirmation, permissions that no object decides, existence, rights in what was found, and state, in this order.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::Response;
use http::header::{AUTHORIZATION, CONNECTION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Version};
use packhouse_store::{AuditEvent, MemberRow, OrganizationId, now_ms};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::body::CallBody;
use super::error::ApiError;
use super::portal::{self, Visitor};
use super::route::{Right, Route};
use super::shown::Shown;
use super::{Answer, error};
use packhouse_app::App;
use packhouse_app::body_budget::Share;
use packhouse_identity as identity;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_wire::catalogue::{self, Code};
use packhouse_wire::client_address::caller;
use packhouse_wire::request_id;

/// Who calls.
#[derive(Debug)]
pub struct Caller {
    /// The member.
    pub member: MemberRow,
    /// What the member may do.
    pub permissions: Permissions,
    /// SHA-256 of the session's secret.
    pub session: [u8; 32],
}

/// A call as a handler gets it.
pub struct Call {
    /// The state of the program.
    pub app: Arc<App>,
    /// From which address.
    pub address: IpAddr,
    /// The time of the call, in ms since 1970: the same all through it.
    pub now: i64,
    /// Names the call in its answer, the log and the audit log.
    pub request_id: String,
    headers: HeaderMap,
    path: HashMap<String, String>,
    query: HashMap<String, String>,
    body: Option<Value>,
    caller: Option<Caller>,
    right: Right,
    judged: Arc<AtomicBool>,
    /// What the body takes of the memory for bodies, as long as the call lasts.
    _share: Option<Share>,
}

/// Takes a request through to its answer.
pub(crate) async fn serve(app: Arc<App>, route: &'static Route, request: Request) -> Response {
    let started = Instant::now();
    let request_id = request_id::next();
    let judged = Arc::new(AtomicBool::new(matches!(route.right, Right::Anyone | Right::SignedIn)));
    let (parts, body) = request.into_parts();
    let (method, version) = (parts.method.clone(), parts.version);
    let mut body = CallBody::new(&parts.headers, body);
    let mut shown = Shown::default();
    let request = (parts, &mut body);
    let outcome =
        answer(Arc::clone(&app), route, request, &request_id, Arc::clone(&judged), &mut shown).await;
    if let Err(error) = &outcome {
        shown.count(&app, error);
    }
    let mut answer = match outcome {
        // A handler that forgot to ask for the right that its row names gives nothing away.
        Ok(answer) if answer.status().is_success() && !judged.load(Ordering::Relaxed) => {
            ApiError::Internal(anyhow::anyhow!("{} answered without judging its right", route.path))
                .into_answer(&request_id)
        }
        Ok(answer) => answer,
        Err(error) => error.naming_the_part(&app.store).await.into_answer(&request_id),
    };
    if !body.drain().await && version < Version::HTTP_2 {
        // What is left of the body is in the way of the next request.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    error::name_request(&mut answer, &request_id);
    let status = answer.status().as_u16();
    let duration_ms = started.elapsed().as_millis() as u64;
    tracing::info!(request.id = %request_id, %method, route = route.path, status, duration_ms, "call");
    count(route, status, 1);
    answer
}

/// Counts calls of a route. With none, it makes the route known to whoever reads the metrics.
pub(super) fn count(route: &'static Route, status: u16, calls: u64) {
    metrics::counter!("packhouse_api_calls_total", "route" => route.path, "method" => route.method.as_str(), "status" => status.to_string())
        .increment(calls);
}

/// Where a confirmation may stand instead of the body: some clients drop the body of a DELETE.
const CONFIRMATION: &str = "x-confirmation-token";

async fn answer(
    app: Arc<App>,
    route: &'static Route,
    (mut parts, body): (Parts, &mut CallBody),
    request_id: &str,
    judged: Arc<AtomicBool>,
    shown: &mut Shown,
) -> Answer {
    let address = address(&parts, &app);
    shown.address = address.to_string();
    let (limits, signed) = (&app.config.limits, route.right != Right::Anyone);
    body.check(route.wants_body(), signed, limits)?;
    shown.anything = parts.headers.contains_key(AUTHORIZATION) || parts.headers.contains_key(COOKIE);
    let (caller, csrf) = match route.right {
        Right::Anyone => (None, None),
        _ => session(&app, &parts).await.map(|(caller, csrf)| (Some(caller), csrf))?,
    };
    shown.caller = caller
        .as_ref()
        .map(|caller| (caller.member.organization, caller.member.email.clone(), credential(&caller.session)));
    // Only now: a stranger's body is not read, and who reads a large one here is known by then.
    let share = app.bodies.share(address);
    let (body, share) = body.json(route.wants_body(), signed, limits, share).await?;
    let path = path(&mut parts).await?;
    let call = Call {
        address,
        now: now_ms(),
        request_id: request_id.to_owned(),
        query: query(&parts)?,
        headers: parts.headers,
        path,
        body,
        caller,
        right: route.right,
        judged,
        _share: Some(share),
        app,
    };
    let mut answer = (route.handler)(call).await?;
    if let Some(csrf) = csrf.and_then(|csrf| HeaderValue::try_from(csrf).ok()) {
        answer.headers_mut().insert(portal::CSRF, csrf);
    }
    Ok(answer)
}

/// Names a session in the audit log. It is kept as a hash of 256 random bits, of which this is a part that tells nobody more.
pub(crate) fn credential(session: &[u8; 32]) -> String {
    let [a, b, c, d, e, f, ..] = session;
    format!("session:{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
}

/// Who calls, and the CSRF token of a browser's session. `Authorization` goes before a cookie.
async fn session(app: &App, parts: &Parts) -> Result<(Caller, Option<String>), ApiError> {
    let unknown = || ApiError::from(&catalogue::NOT_SIGNED_IN);
    if parts.headers.contains_key(AUTHORIZATION) {
        let presented = bearer(&parts.headers).ok_or_else(unknown)?;
        return Ok((signed_in(app, presented).await?.ok_or_else(unknown)?, None));
    }
    let visitor = Visitor::of(app, &parts.headers).await?.ok_or_else(unknown)?;
    if !parts.method.is_safe() {
        let given = parts.headers.get(portal::CSRF).and_then(|field| field.to_str().ok());
        visitor.check(app, &parts.headers, given.unwrap_or_default())?;
    }
    let csrf = visitor.csrf();
    Ok((visitor.caller, Some(csrf)))
}

/// Whose session this is the secret of; none when there is none such.
pub(super) async fn signed_in(app: &App, secret: &str) -> Result<Option<Caller>, ApiError> {
    let Some(sha256) = identity::fingerprint(secret) else { return Ok(None) };
    let found = app.store.find_session(&sha256, now_ms()).await?;
    Ok(found.map(|(session, member)| {
        let permissions = Permissions::read(&member.permissions);
        Caller { member, permissions, session: session.secret_sha256 }
    }))
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
pub(super) fn address(parts: &Parts, app: &App) -> IpAddr {
    let peer = parts.extensions.get::<super::Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    caller(peer, &parts.headers, &app.config.trusted_proxies)
}

impl Call {
    /// A request for a page that is no row of the route table, from who sits there.
    pub fn of_page(app: Arc<App>, parts: &Parts, caller: Option<Caller>) -> Call {
        Call {
            address: address(parts, &app),
            now: now_ms(),
            request_id: request_id::next(),
            headers: parts.headers.clone(),
            path: HashMap::new(),
            query: HashMap::new(),
            body: None,
            caller,
            right: Right::OfObject,
            judged: Arc::new(AtomicBool::new(false)),
            _share: None,
            app,
        }
    }

    /// The request's header fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Who calls. Only a route for anyone has nobody.
    pub fn caller(&self) -> Result<&Caller, ApiError> {
        self.caller.as_ref().ok_or_else(|| ApiError::from(&catalogue::NOT_SIGNED_IN))
    }

    /// The caller's organization.
    pub fn organization(&self) -> Result<OrganizationId, ApiError> {
        Ok(self.caller()?.member.organization)
    }

    /// Judges the right that the route's row names: 403 `insufficient_permissions` where it is not held. Every handler
    /// calls this or [`judge`](Call::judge) before it answers.
    pub fn judge_permission(&self) -> Result<&Caller, ApiError> {
        let caller = self.caller()?;
        match self.right {
            Right::Holds(permission) => self.needs(permission)?,
            Right::Anyone | Right::SignedIn | Right::OfObject => {}
        }
        self.judged.store(true, Ordering::Relaxed);
        Ok(caller)
    }

    /// The same, where the row names a permission: no object decides whether it is held, so that it stands before the question
    /// whether there is such an object. Whatever looks up what a path names calls this first; the right in what was found is judged
    /// after it.
    pub fn judge_permission_of_organization(&self) -> Result<(), ApiError> {
        match self.right {
            Right::Holds(_) => self.judge_permission().map(|_| ()),
            Right::Anyone | Right::SignedIn | Right::OfObject => Ok(()),
        }
    }

    /// Judges a right in what was found: `code` where it is not held.
    pub fn judge(&self, held: bool, code: &'static Code) -> Result<(), ApiError> {
        self.judged.store(true, Ordering::Relaxed);
        if held { Ok(()) } else { Err(ApiError::from(code)) }
    }

    /// 403 `insufficient_permissions` unless the caller holds the permission.
    pub fn needs(&self, permission: Permission) -> Result<(), ApiError> {
        match self.caller()?.permissions.holds(permission) {
            true => Ok(()),
            false => Err(ApiError::with(&catalogue::INSUFFICIENT_PERMISSIONS, permission.name())),
        }
    }

    /// The body in the shape of its structure; 400 `invalid_request` for an unknown or missing field.
    pub fn body<T: DeserializeOwned>(&mut self) -> Result<T, ApiError> {
        let body = self.body.take().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        serde_json::from_value(body)
            .map_err(|error| ApiError::invalid(&format!("The body is not right: {error}.")))
    }

    /// A parameter of the path.
    pub fn path(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// A parameter of the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// 400 `invalid_request` where the query has another parameter than these.
    pub fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.query.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(ApiError::invalid(&format!("There is no parameter `{name}` here."))),
            None => Ok(()),
        }
    }

    /// Spends the confirmation for this action, from the body's field or else the header; `missing` where neither is
    /// there, `step_up_required` where it is no confirmation of this caller for this action, or expired, or spent: 401, or 403
    /// on the actions that answer so where there is none (Authentication rule 7 of the specification).
    pub async fn confirm(
        &self,
        field: Option<&Value>,
        action: &str,
        missing: &'static Code,
    ) -> Result<(), ApiError> {
        let wrong = match missing.status {
            403 => &catalogue::STEP_UP_FORBIDDEN,
            _ => &catalogue::STEP_UP_REQUIRED,
        };
        let header = self.headers.get(CONFIRMATION).map(|field| field.to_str().unwrap_or_default());
        let token = match (field, header) {
            (Some(Value::String(token)), _) => token.as_str(),
            (None | Some(Value::Null), Some(token)) => token,
            (None | Some(Value::Null), None) => return Err(ApiError::from(missing)),
            (Some(_), _) => return Err(ApiError::from(wrong)),
        };
        let member = self.caller()?.member.id;
        let spent = match identity::fingerprint(token) {
            Some(sha256) => self.app.store.spend_confirmation(&sha256, member, action, self.now).await?,
            None => false,
        };
        if spent { Ok(()) } else { Err(ApiError::from(wrong)) }
    }

    /// An event of this caller's, to be written with the change that it tells of.
    pub fn event(&self, action: &str, subject: impl Into<String>) -> Result<Option<AuditEvent>, ApiError> {
        let Caller { member, session, .. } = self.caller()?;
        let credential = credential(session);
        Ok(Some(self.event_of(member.organization, &member.email, &credential, action, subject)))
    }

    /// An event of somebody who has no session, or none yet; `credential` names what was shown, and is no part of it.
    pub fn event_of(
        &self,
        organization: OrganizationId,
        actor: &str,
        credential: &str,
        action: &str,
        subject: impl Into<String>,
    ) -> AuditEvent {
        AuditEvent {
            organization,
            actor: actor.to_owned(),
            credential: credential.to_owned(),
            action: action.to_owned(),
            subject: subject.into(),
            address: self.address.to_string(),
            request_id: self.request_id.clone(),
            detail: String::new(),
        }
    }
}

/// For paths and methods that no row has.
pub(crate) use error::{no_such_method, no_such_path};
