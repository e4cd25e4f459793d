//! Pages of whoever has no session, or need not have one: their forms are judged against a cookie that the page has set.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};
use maud::Markup;
use packhouse_api::error::ApiError;
use packhouse_api::operations::{Origin, in_service};
use packhouse_api::{forms, portal};
use packhouse_app::App;
use packhouse_identity::{Minted, mint};

use crate::fields::Fields;
use crate::visit::{named, origin, parameters};
use crate::{Answer, Portal, fault, frame, parts, policy};

/// Somebody at a page that asks for no session.
pub(crate) struct Guest {
    /// From where.
    pub(crate) origin: Origin,
    named: HashMap<String, String>,
    /// Of the address.
    pub(crate) query: Fields,
    /// What was sent.
    pub(crate) form: Fields,
    /// The request's.
    pub(crate) headers: HeaderMap,
    /// The token for forms.
    csrf: String,
    /// The cookie that goes with it, where there was none.
    cookie: Option<HeaderValue>,
}

impl Guest {
    /// A parameter of the path, percent-decoded once.
    pub(crate) fn named(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    /// The state of the program.
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.origin.app
    }

    /// The hidden field of a form.
    pub(crate) fn guard(&self) -> Markup {
        parts::csrf(&self.csrf)
    }

    /// A page without the way through the portal.
    pub(crate) fn page(&self, sheet: frame::Sheet<'_>, content: &Markup) -> Response {
        let mut answer = frame::lone(sheet, content);
        if let Some(cookie) = &self.cookie {
            answer.headers_mut().append(SET_COOKIE, cookie.clone());
        }
        answer
    }
}

/// A page for anyone.
pub(crate) fn page<F, Fut>(show: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<Guest>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    get(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        serve(&portal, request, false, show).await
    })
}

/// What such a page's forms do.
pub(crate) fn form<F, Fut>(act: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<Guest>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    post(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        serve(&portal, request, true, act).await
    })
}

async fn serve<F, Fut>(portal: &Arc<Portal>, request: Request, sends: bool, handler: F) -> Response
where
    F: FnOnce(Arc<Guest>) -> Fut,
    Fut: Future<Output = Answer>,
{
    let (mut parts, body) = request.into_parts();
    let origin = origin(portal, &parts);
    let id = origin.request_id.clone();
    let query = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
    let names = parameters(&mut parts).await;
    let path = parts.uri.path();
    let answer = match take(origin, path, parts.headers, sends.then_some(body)).await {
        Ok(guest) => handler(Arc::new(Guest { named: names, query, ..guest })).await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => fault::alone(&error.naming_the_part(&portal.app.store).await),
    };
    named(answer, &id)
}

async fn take(
    origin: Origin,
    path: &str,
    headers: HeaderMap,
    body: Option<axum::body::Body>,
) -> Result<Guest, ApiError> {
    let app = Arc::clone(&origin.app);
    in_service(&app)?;
    let mut form = Fields::default();
    if let Some(body) = body {
        let received = forms::receive(&app, origin.address, &headers, body, false).await?;
        form = Fields::read(&received.bytes);
        policy::judge_stranger(&app, &headers, form.text("csrf"))?;
        policy::may_change(&app, path)?;
    }
    let known = policy::stranger(&app, &headers);
    let cookie = known.is_none();
    let secret = known.unwrap_or_else(|| {
        let Minted { secret, .. } = mint();
        secret
    });
    let set = || portal::set(&app, policy::FORM, secret.reveal(), policy::FORM_SECONDS);
    let cookie = cookie.then(set).transpose()?;
    let csrf = portal::csrf(&secret);
    let (named, query) = (HashMap::new(), Fields::default());
    Ok(Guest { origin, named, query, form, headers, csrf, cookie })
}
