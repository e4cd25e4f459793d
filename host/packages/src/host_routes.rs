//! Routes that the host answers without a plugin: the root, health, trusted publishing, the token
//! service and the list of repositories.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use packhouse_runtime::Plugin;

use crate::error_response::HttpError;
use crate::exchange::IdTokenExchange;
use crate::health;
use crate::organizations::Organizations;
use crate::repository_list::RepositoryList;
use crate::request_context::RequestContext;
use crate::resolve::HostRoute;
use crate::token_service::BearerIssuer;
use packhouse_app::App;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;

/// A request for one of the host's own routes.
pub(crate) struct HostRequest<'a> {
    pub app: &'a Arc<App>,
    pub organizations: &'a Organizations,
    pub parts: &'a Parts,
    pub route: HostRoute,
    /// Host name that the client sent, in lower case.
    pub host: Option<String>,
    pub query: Vec<(String, String)>,
}

/// Answers the request. Only trusted publishing, the token service and the list of repositories
/// need an organization. The other routes work even if the store does not.
pub(crate) async fn answer(
    request: HostRequest<'_>,
    body: &mut IncomingBody,
    context: &mut RequestContext,
) -> Result<Response<Body>, HttpError> {
    // Boxed, because few requests come here and the request path need not carry this state.
    Box::pin(answer_route(request, body, context)).await
}

async fn answer_route(
    request: HostRequest<'_>,
    body: &mut IncomingBody,
    context: &mut RequestContext,
) -> Result<Response<Body>, HttpError> {
    match &request.route {
        HostRoute::Root => root(request.parts),
        HostRoute::Health(health) => health::answer(request.app, *health, request.parts),
        HostRoute::NotServed => Err(HttpError::of(&catalogue::UNAUTHORIZED)),
        HostRoute::Awaited => Err(HttpError::of(&catalogue::SERVER_STARTING)),
        HostRoute::NotEnabled => Err(HttpError::of(&catalogue::NOT_ENABLED)),
        HostRoute::Exchange(plugin, path) => {
            let (plugin, path) = (Arc::clone(plugin), path.clone());
            exchange(request, &plugin, &path, body, context).await
        }
        HostRoute::RepositoryList => list(&request, context).await,
        HostRoute::TokenService(plugin) => {
            let plugin = Arc::clone(plugin);
            token_service(request, &plugin, body, context).await
        }
    }
}

/// Answers a request for the root: names the server, without authentication.
fn root(parts: &Parts) -> Result<Response<Body>, HttpError> {
    let body = match parts.method {
        Method::GET => Body::full(Bytes::from_static(b"Packhouse: a package repository server\n")),
        Method::HEAD => Body::empty(),
        _ => return Err(HttpError::method_not_allowed("GET, HEAD")),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(response)
}

async fn list(request: &HostRequest<'_>, context: &mut RequestContext) -> Result<Response<Body>, HttpError> {
    let (app, parts, query) = (request.app, request.parts, request.query.as_slice());
    let organization = request.organizations.find(app, request.host.as_deref(), context).await?;
    RepositoryList { app, parts, query, organization }.answer(context).await
}

async fn exchange(
    request: HostRequest<'_>,
    plugin: &Plugin,
    path: &[String],
    body: &mut IncomingBody,
    context: &mut RequestContext,
) -> Result<Response<Body>, HttpError> {
    let HostRequest { app, organizations, parts, host, .. } = request;
    let organization = organizations.find(app, host.as_deref(), context).await?;
    context.error_format = Arc::clone(&plugin.description().error_format);
    context.format = Some(plugin.description().format.clone());
    IdTokenExchange { app, plugin, path, organization }.answer(parts, body, context).await
}

async fn token_service(
    request: HostRequest<'_>,
    plugin: &Plugin,
    body: &mut IncomingBody,
    context: &mut RequestContext,
) -> Result<Response<Body>, HttpError> {
    let HostRequest { app, organizations, parts, host, query, .. } = request;
    let organization = organizations.find(app, host.as_deref(), context).await?;
    // Keep the challenge `Basic`: a client that is refused here should present a password, not a
    // bearer token.
    context.error_format = Arc::clone(&plugin.description().error_format);
    context.format = Some(plugin.description().format.clone());
    let (peer, own_address, request_id) = (context.peer, &*context.own_address, &*context.request_id);
    let service = BearerIssuer { app, plugin, peer, own_address, request_id };
    let (response, credential) = service.answer(parts, query, body, organization).await?;
    context.credential = credential;
    Ok(response)
}
