//! The request path: one function that lists the steps in order, each of which has its own file.
//! Requests with and without a repository take the same path.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, Response};

use crate::authorize::authorize;
use crate::cache_lookup::CacheLookup;
use crate::check::check;
use crate::declared_length::refuse_by_declared_length;
use crate::encodings::Encodings;
use crate::error_response::HttpError;
use crate::find_plugin::find_plugin;
use crate::handle::handle;
use crate::host_routes::{self, HostRequest};
use crate::identified_request::{ResolvedRequest, identify_caller};
use crate::maintenance::refuse_in_maintenance;
use crate::moved::moved;
use crate::organizations::Organizations;
use crate::prepared_response::prepare;
use crate::quota::refuse_past_quota;
use crate::rate_limit::limit_rate;
use crate::receive::receive;
use crate::repository_views::RepositoryViews;
use crate::request_context::RequestContext;
use crate::resolve::{Route, error_format, read_host, resolve};
use crate::response_cache::ResponseCache;
use crate::route::{Routed, route};
use crate::select_repositories::select_repositories;
use crate::send::send;
use crate::unauthenticated;
use packhouse_app::App;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue::{NOT_FOUND, STORED_DATA_DAMAGED};
use packhouse_wire::incoming_body::IncomingBody;

pub(crate) struct RepositoryHost {
    pub app: Arc<App>,
    cache: ResponseCache,
    encodings: Arc<Encodings>,
    views: RepositoryViews,
    organizations: Organizations,
}

impl RepositoryHost {
    /// Creates the repository host of this server.
    pub(crate) fn new(app: Arc<App>) -> Self {
        let cache = ResponseCache::new(app.config.response_cache_bytes, app.shares.cached_files);
        let encodings = Encodings::new(app.config.compression);
        let (views, organizations) = (RepositoryViews::default(), Organizations::default());
        Self { app, cache, encodings, views, organizations }
    }

    /// Answers a request. Repeats a read once if another request deleted data during it; the
    /// repeated read uses the remaining data. Also repeats a read if bytes are missing or damaged.
    /// A proxy then fetches such bytes again, and a cached response may be older than a repair.
    /// Answers a HEAD for lost bytes with 404, so that the client uploads them again.
    pub(crate) async fn answer(
        &self,
        parts: &Parts,
        body: &mut IncomingBody,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, HttpError> {
        let answered = self.answer_or_retry(parts, body, context).await;
        match answered {
            Err(error) if parts.method == Method::HEAD && error.is_of(&STORED_DATA_DAMAGED) => {
                Err(HttpError::of(&NOT_FOUND))
            }
            answered => answered,
        }
    }

    async fn answer_or_retry(
        &self,
        parts: &Parts,
        body: &mut IncomingBody,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, HttpError> {
        let answered = self.answer_once(parts, body, context).await;
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        match &answered {
            Err(error) if reads && error.is_of(&STORED_DATA_DAMAGED) => {
                Box::pin(self.answer_once(parts, body, context)).await
            }
            Err(error) if reads && error.is_torn() => {
                // Another server may have deleted the data, and its notice may not have arrived
                // yet. With the cached look-up, the repeated read would fail in the same way.
                if let Some(repository) = context.repository {
                    self.app.store.invalidate_lookup(repository);
                }
                Box::pin(self.answer_once(parts, body, context)).await
            }
            _ => answered,
        }
    }

    /// Runs the steps of the request path once. Each step may refuse the request; `context`
    /// collects the facts for the error response.
    async fn answer_once(
        &self,
        parts: &Parts,
        body: &mut IncomingBody,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, HttpError> {
        let (app, organizations) = (&self.app, &self.organizations);
        let host = read_host(parts)?;
        let path = organizations.inner_path(app, host.as_deref(), parts.uri.path()).await;
        context.error_format = error_format(path, &app.runtime);
        let target = resolve(parts, host, path, &app.runtime)?;
        let address = match target.route {
            Route::Repository(address) => address,
            Route::Host(route) => {
                let (host, query) = (target.host, target.query);
                let request = HostRequest { app, organizations, parts, route, host, query };
                return host_routes::answer(request, body, context).await;
            }
        };
        refuse_in_maintenance(app, &address, context)?;
        let organization = organizations.find(app, target.host.as_deref(), context).await?;
        let resolved = ResolvedRequest { app, parts, organization, address, query: target.query };
        let identified = identify_caller(resolved, context).await?;
        let request = match unauthenticated::try_public_route(&identified, context).await? {
            Some(public_request) => public_request,
            None => find_plugin(&identified, context).await?,
        };
        limit_rate(&request)?;
        let mut cache = CacheLookup::of(&self.cache, &request, context.follows_unknown_site);
        let Routed { route_intent, instance } = route(&request, cache.intent()).await?;
        let intent = authorize(&request, route_intent)?;
        if let Some(entry) = cache.entry(&self.cache, &app.store).await? {
            app.upstreams.used_again(&entry.response.cache_uses);
            return send(&request, &self.encodings, &entry.response).await;
        }
        let moved = moved(&request, &intent)?;
        let repositories = select_repositories(&request, &intent, &self.views).await?;
        refuse_by_declared_length(&intent, &parts.headers)?;
        check(&request, &intent, &repositories, moved).await?;
        refuse_past_quota(&request, &intent).await?;
        let received = receive(&request, &intent, body).await?.moved(moved);
        let answer = handle(&request, &intent, instance, repositories, received).await?;
        let response = self.encodings.offer(prepare(answer, request.is_private()).await?);
        let response = cache.store(&self.cache, intent, response).await?;
        send(&request, &self.encodings, &response).await
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_request_path_page_quotes_the_function() {
        let (page, source) =
            (include_str!("../../../docs/explanation/request-path.md"), include_str!("request_path.rs"));
        let (_, once) = source.split_once("async fn answer_once(").unwrap();
        let (_, function) = once.split_once("-> Result<Response<Body>, HttpError> {\n").unwrap();
        let (body, _) = function.split_once("\n    }\n}").unwrap();
        let lines: Vec<&str> =
            body.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect();
        assert!(
            page.contains(&lines.join("\n")),
            "docs/explanation/request-path.md quotes another request path"
        );
    }
}
