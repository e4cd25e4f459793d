//! The repository host, which answers requests for packages. `RepositoryHost::answer_once` lists
//! the steps in order, and each step has its own file.

mod access_request;
mod admission_filter;
mod authorize;
mod bearer_scope;
mod cache_entry;
mod cache_lookup;
mod cache_meters;
mod check;
mod coded_variants;
mod credential;
mod declared_length;
mod downloads;
mod encoder;
mod encodings;
mod error_body;
mod error_response;
mod error_sentence;
mod exchange;
mod find_plugin;
mod gzip_parts;
mod handle;
mod head;
mod health;
mod host_routes;
mod identified_request;
mod identify;
mod log;
mod maintenance;
mod moved;
mod multipart;
mod organizations;
mod package_grants;
mod package_limits;
mod package_refusal;
mod packed_response;
mod password_sign_in;
mod plugin_failure;
mod prepared_response;
mod provenance_flag;
mod quota;
mod rate_limit;
mod receive;
mod repository_list;
mod repository_request;
mod repository_views;
mod request_context;
mod request_path;
mod resolve;
mod response_body;
mod response_cache;
mod response_headers;
mod response_request;
mod route;
mod scope;
mod select_repositories;
mod send;
mod sent_file;
mod services;
mod token_service;
mod unauthenticated;
mod uncached_json;
mod unknown_sites;
mod upstream_errors;
mod validity;
mod variant;
mod weighted_cache;
mod withheld_names;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use packhouse_runtime::{ChallengeScheme, ErrorFormat};
use packhouse_store::Refusal;
use tokio::net::TcpListener;
use tracing::Instrument as _;

use self::error_response::{Addresses, ErrorContext, HttpError};
use self::error_sentence::ErrorReader;
use self::request_context::{RequestContext, is_no_format};
use self::request_path::RepositoryHost;
use packhouse_app::App;
use packhouse_app::links::Side;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;
use packhouse_wire::client_address::caller;
use packhouse_wire::incoming_body::IncomingBody;
use packhouse_wire::listen::{self, Holds, ListenerRules, NoPlace};
use packhouse_wire::site::Site;
use packhouse_wire::{request_id, trace};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The repository host as a service for a listener.
#[derive(Clone)]
pub struct Packages(Arc<RepositoryHost>);

impl Packages {
    /// Creates the repository host of this process.
    pub fn start(app: Arc<App>) -> Packages {
        Packages(Arc::new(RepositoryHost::new(app)))
    }

    /// Returns the rules for a listener of the repository host.
    pub fn rules(app: &App) -> ListenerRules {
        let rules = app.rules(listen::Windows::UPLOADS).with_requests(app.shares.requests);
        ListenerRules { holds: Holds::ByService, ..rules.with_tls(app.secured().packages) }
    }

    /// Answers a request from this address. Failures become error responses.
    pub async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response<Body> {
        self.0.serve(peer.ip(), request).await
    }
}

/// Serves the repository host on this listener, until the server stops and has answered the pending
/// requests.
pub async fn run(app: Arc<App>, listener: TcpListener) {
    let rules = Packages::rules(&app);
    let packages = Packages::start(app);
    let service = move |peer: SocketAddr| {
        let packages = packages.clone();
        service_fn(move |request| {
            let packages = packages.clone();
            async move { Ok::<_, Infallible>(packages.answer(peer, request).await) }
        })
    };
    listen::serve(listener, rules, service).await;
}

impl RepositoryHost {
    /// Answers a request. Failures become error responses.
    async fn serve(&self, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        let started = Instant::now();
        let meters = &self.app.meters.packages;
        let ticket = meters.under_way.begin(started);
        let (parts, body) = request.into_parts();
        let trusted = self.app.live.trusted_proxies.get();
        let span = trace::request("packages", &parts.method, &parts.headers, peer, &trusted);
        let site = Site::of_request(&parts, peer, &trusted, self.app.packages_scheme());
        let peer = caller(peer, &parts.headers, &trusted);
        let error_format = resolve::error_format(parts.uri.path(), &self.app.runtime);
        let mut context = RequestContext::new(request_id::next(), peer, site, error_format);
        let mut body = IncomingBody::new(body, self.app.live.limits.get().body_idle);
        let outcome = match parts.extensions.get::<NoPlace>() {
            Some(NoPlace) => Err(HttpError::of(&catalogue::SERVER_BUSY)),
            // Traces are rarely enabled. Without a trace, the future need not be boxed.
            None if span.is_disabled() => self.answer(&parts, &mut body, &mut context).await,
            None => Box::pin(self.answer(&parts, &mut body, &mut context)).instrument(span.clone()).await,
        };
        let mut response = match outcome {
            Ok(response) => response,
            Err(refused) => {
                self.count(&refused, &context);
                refused.log_codes(&context.request_id);
                self.refuse(refused, &parts, &context)
            }
        };
        let spent = body.drain(&parts.headers).await;
        if !spent && parts.version < Version::HTTP_2 {
            // Close the connection, because the unread rest of the body would block the next
            // request on it.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Ok(id) = HeaderValue::from_str(&context.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let took = started.elapsed();
        meters.answered(context.format.as_deref(), &parts.method, response.status(), took);
        log::line(&parts, &response, &context, took);
        if !span.is_disabled() {
            span.record("url.path", &*log::path(&parts));
            trace::answered(&span, response.status().as_u16(), &context.request_id);
        }
        response.map(|body| body.with_ticket(ticket))
    }

    /// Counts a refused credential in the audit log.
    fn count(&self, refused: &HttpError, context: &RequestContext) {
        let Some(code) = refused.credential_code() else { return };
        let refusal = Refusal {
            organization: context.organization,
            actor: context.caller.as_deref().unwrap_or_default().to_owned(),
            credential: context.credential.as_deref().unwrap_or_default().to_owned(),
            address: context.peer.to_string(),
            code: code.to_owned(),
        };
        self.app.store.refused(refusal, packhouse_store::now_ms());
    }

    fn refuse(&self, refused: HttpError, parts: &Parts, context: &RequestContext) -> Response<Body> {
        let base_url = match context.base_url.as_str() {
            "" => self.app.base_url_at(None, context.site.as_ref(), Side::Packages),
            found => found.to_owned(),
        };
        let ErrorFormat { template, challenge, token_service, sentence_as_reason, sentence_clients } =
            context.error_format.as_ref();
        let current = self.app.runtime.current();
        // If the format is not known, the client may belong to any format, and only its headers
        // identify it.
        let of_any = is_no_format(&context.error_format).then_some(current.plugins()).into_iter().flatten();
        let of_any = of_any.flat_map(|plugin| &plugin.description().sentence_clients);
        let reader =
            ErrorReader::of(&parts.headers, sentence_clients.iter().chain(of_any), *sentence_as_reason);
        let token_service = token_service.as_ref().map(|path| format!("{base_url}{path}"));
        let basic = ChallengeScheme::basic();
        let api_url = self.app.api_url_at(context.site.as_ref(), Side::Packages);
        let addresses = Addresses {
            host: organizations::realm(&base_url),
            base_url: &base_url,
            api_url: &api_url,
            token_service: token_service.as_deref(),
        };
        let error_context = ErrorContext {
            template,
            challenge: if context.own_challenge { challenge } else { &basic },
            addresses,
            request_id: &context.request_id,
            reader,
            head: parts.method == Method::HEAD,
        };
        error_response::answer(refused, error_context)
    }
}

#[cfg(test)]
mod tests;
