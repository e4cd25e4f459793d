//! Pages that need no session. Their forms are checked against a cookie that the page has set.

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
use crate::visit::{origin, parameters, with_request_id};
use crate::{PageResult, Portal, fault, frame, parts, policy};

/// A request to a page that needs no session.
pub(crate) struct GuestContext {
    /// Address and site of the request.
    pub(crate) origin: Origin,
    named: HashMap<String, String>,
    /// Parameters of the query string.
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    pub(crate) headers: HeaderMap,
    /// CSRF token of the page's forms.
    csrf: String,
    /// New cookie with the secret behind the token, if the request had none.
    cookie: Option<HeaderValue>,
}

impl GuestContext {
    /// Returns a path parameter, percent-decoded once; empty if it is missing.
    pub(crate) fn named(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    pub(crate) fn app(&self) -> &Arc<App> {
        &self.origin.app
    }

    /// Builds the hidden CSRF field of a form.
    pub(crate) fn form_tokens(&self) -> Markup {
        parts::csrf(&self.csrf)
    }

    /// Builds a page without navigation.
    pub(crate) fn page(&self, sheet: frame::Sheet<'_>, content: &Markup) -> Response {
        let mut answer = frame::guest_page(sheet, content);
        if let Some(cookie) = &self.cookie {
            answer.headers_mut().append(SET_COOKIE, cookie.clone());
        }
        answer
    }
}

/// Routes GET to a page that needs no session.
pub(crate) fn page<F, Fut>(show: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<GuestContext>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = PageResult> + Send + 'static,
{
    get(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        serve(&portal, request, false, show).await
    })
}

/// Routes POST to the form handler of a page that needs no session.
pub(crate) fn form<F, Fut>(act: F) -> MethodRouter<Arc<Portal>>
where
    F: Fn(Arc<GuestContext>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = PageResult> + Send + 'static,
{
    post(move |State(portal): State<Arc<Portal>>, request: Request| async move {
        serve(&portal, request, true, act).await
    })
}

async fn serve<F, Fut>(portal: &Arc<Portal>, request: Request, sends: bool, handler: F) -> Response
where
    F: FnOnce(Arc<GuestContext>) -> Fut,
    Fut: Future<Output = PageResult>,
{
    let (mut parts, body) = request.into_parts();
    let origin = origin(portal, &parts);
    let id = origin.request_id.clone();
    let query = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
    let names = parameters(&mut parts).await;
    let path = parts.uri.path();
    let answer = match take(origin, path, parts.headers, sends.then_some(body)).await {
        Ok(guest) => handler(Arc::new(GuestContext { named: names, query, ..guest })).await,
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => fault::guest_error_page(&error.naming_the_part(&portal.app.store).await),
    };
    with_request_id(answer, &id)
}

async fn take(
    origin: Origin,
    path: &str,
    headers: HeaderMap,
    body: Option<axum::body::Body>,
) -> Result<GuestContext, ApiError> {
    let app = Arc::clone(&origin.app);
    in_service(&app)?;
    let mut form = Fields::default();
    if let Some(body) = body {
        let received = forms::receive(&app, origin.address, &headers, body, false).await?;
        form = Fields::read(&received.bytes);
        policy::check_guest_form(&app, &headers, form.text("csrf"))?;
        policy::may_change(&app, path)?;
    }
    let known = policy::form_secret(&app, &headers);
    let cookie = known.is_none();
    let secret = known.unwrap_or_else(|| {
        let Minted { secret, .. } = mint();
        secret
    });
    let set = || portal::set(&app, policy::FORM, secret.reveal(), policy::FORM_SECONDS);
    let cookie = cookie.then(set).transpose()?;
    let csrf = portal::csrf(&secret);
    let (named, query) = (HashMap::new(), Fields::default());
    Ok(GuestContext { origin, named, query, form, headers, csrf, cookie })
}
