//! The repository host: one request from its head to its answer. The steps stand in [`Packages::answer`],
//! [`Packages::serve_below`] and [`Asking::answer`] in the order in which they happen, each in a file of its own.

mod answer;
mod authorize;
mod call;
mod head;
mod identify;
mod kept;
mod log;
mod members;
mod multipart;
mod organizations;
mod receive;
mod resolve;
mod scope;
mod send;
mod shape;
mod token_service;
mod unnamed;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use packhouse_runtime::{Challenge, Description, ErrorStyle, Plugin};
use packhouse_store::{OrganizationId, OrganizationRow, Refusal, RepositoryRow};
use tokio::net::TcpListener;

use self::answer::Asking;
pub(crate) use self::call::view;
use self::head::Circumstances;
use self::identify::Credential;
pub(crate) use self::identify::Known;
use self::kept::Answers;
pub(crate) use self::receive::Arriving;
use self::resolve::{Below, Place, Target};
use self::scope::Scopes;
use self::send::Asked;
use self::shape::{Frame, Refused};
use self::unnamed::Unnamed;
use crate::api::address::caller;
use crate::app::App;
use crate::catalogue;
use crate::listen;
use crate::wire::body::Body;
use crate::wire::request_id;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The repository host's state.
struct Packages {
    app: Arc<App>,
    answers: Answers,
    organizations: organizations::Organizations,
    meters: log::Meters,
}

/// What is found out about a request on its way, for its answer's shape and its line in the log.
struct Visit {
    request_id: String,
    peer: IpAddr,
    style: ErrorStyle,
    /// Where the challenge of a refusal is a bearer's: the token service's path.
    token_service: Option<String>,
    base_url: String,
    credential: Option<String>,
    /// Whose the credential is.
    caller: Option<String>,
    organization: Option<OrganizationId>,
}

/// Serves the repository host on this listener until the program stops and what was in flight is answered.
pub(crate) async fn run(app: Arc<App>, listener: TcpListener) {
    let (limits, stop) = (app.config.limits, app.stop.clone());
    let packages = Arc::new(Packages::new(app));
    let service = move |peer: SocketAddr| {
        let packages = Arc::clone(&packages);
        service_fn(move |request| {
            let packages = Arc::clone(&packages);
            async move { Ok::<_, Infallible>(packages.serve(peer.ip(), request).await) }
        })
    };
    listen::serve(listener, limits, stop, service).await;
}

impl Packages {
    /// A host for this program's repositories.
    fn new(app: Arc<App>) -> Self {
        Self {
            app,
            answers: Answers::new(),
            organizations: organizations::Organizations::default(),
            meters: log::Meters::new(),
        }
    }

    /// Answers a request; every failure is an answer too.
    async fn serve(&self, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut visit = Visit {
            request_id: request_id::next(),
            peer: caller(peer, &parts.headers, &self.app.config.trusted_proxies),
            style: resolve::style(parts.uri.path(), &self.app.runtime),
            token_service: None,
            base_url: String::new(),
            credential: None,
            caller: None,
            organization: None,
        };
        let mut body = Arriving::new(body, self.app.config.limits.body_idle);
        let mut response = match self.answer(&parts, &mut body, &mut visit).await {
            Ok(response) => response,
            Err(refused) => {
                self.count(&refused, &visit);
                self.refuse(refused, &parts, &visit)
            }
        };
        let spent = body.drain(&parts.headers).await;
        if !spent && parts.version < Version::HTTP_2 {
            // What is left of the body is in the way of the next request.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Ok(id) = HeaderValue::from_str(&visit.request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        self.meters.answered(&parts.method, response.status(), started.elapsed());
        log::line(&parts, &response, &visit, started.elapsed());
        response
    }

    /// Counts the refusal of a credential, for the audit log.
    fn count(&self, refused: &Refused, visit: &Visit) {
        let Some(code) = refused.credential_code() else { return };
        let refusal = Refusal {
            organization: visit.organization,
            actor: visit.caller.clone().unwrap_or_default(),
            credential: visit.credential.clone().unwrap_or_default(),
            address: visit.peer.to_string(),
            code: code.to_owned(),
        };
        self.app.store.refused(refusal, packhouse_store::now_ms());
    }

    fn refuse(&self, refused: Refused, parts: &Parts, visit: &Visit) -> Response<Body> {
        let base_url = match visit.base_url.is_empty() {
            true => self.app.base_url(),
            false => visit.base_url.clone(),
        };
        let token_service = visit.token_service.as_ref().map(|path| format!("{base_url}{path}"));
        let frame = Frame {
            style: visit.style,
            realm: organizations::realm(&base_url),
            token_service: token_service.as_deref(),
            request_id: &visit.request_id,
            head: parts.method == Method::HEAD,
        };
        shape::answer(refused, frame)
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: &mut Arriving,
        visit: &mut Visit,
    ) -> Result<Response<Body>, Refused> {
        let Target { host, place, query } = resolve::resolve(parts, &self.app.runtime)?;
        match &place {
            Place::Bare => return bare(parts),
            Place::Nowhere => return Err(Refused::of(&catalogue::UNAUTHORIZED)),
            Place::NotEnabled => return Err(Refused::of(&catalogue::NOT_ENABLED)),
            Place::TokenService(_) | Place::Below(_) => (),
        }
        let organization = self.organizations.find(&self.app, host.as_deref()).await?;
        visit.base_url = organizations::base_url(&self.app, organization.as_ref(), host.as_deref());
        let Some(organization) = organization else { return Err(Refused::of(&catalogue::UNAUTHORIZED)) };
        match place {
            Place::Below(below) => self.serve_below(parts, body, visit, (organization, below, query)).await,
            Place::TokenService(plugin) => {
                // Whoever is refused here shall show a password, not ask for a bearer.
                visit.style = plugin.description().error_style;
                visit.organization = Some(organization.id);
                let service = token_service::Service { app: &self.app, plugin: &plugin, peer: visit.peer };
                let (answer, credential) = service.answer(parts, query, body, organization.id).await?;
                visit.credential = credential;
                Ok(answer)
            }
            Place::Bare | Place::Nowhere | Place::NotEnabled => Err(Refused::of(&catalogue::UNAUTHORIZED)),
        }
    }

    /// From here on the organization is known, and a path below what may be a repository of it.
    async fn serve_below(
        &self,
        parts: &Parts,
        body: &mut Arriving,
        visit: &mut Visit,
        (organization, below, query): (OrganizationRow, Below, Vec<(String, String)>),
    ) -> Result<Response<Body>, Refused> {
        let credential = (Credential::read(&parts.headers), visit.peer);
        visit.organization = Some(organization.id);
        let claim = below.claim.clone();
        let service = claim.as_ref().map(|claim| claim.plugin.description());
        let service = service.filter(|description| description.token_service.is_some());
        let format = service.map(|description| description.format.as_str());
        let name = below.name.clone();
        let known = identify::identify(
            &self.app,
            organization.id,
            name.as_deref().unwrap_or_default(),
            credential,
            format,
        )
        .await?;
        let known = Arc::new(known);
        visit.credential.clone_from(&known.credential);
        visit.caller.clone_from(&known.caller);
        let now = packhouse_store::now_ms();

        // A claim leads to repositories of its own format alone.
        let of_claim = |row: &&RepositoryRow| {
            claim.as_ref().is_none_or(|claim| claim.plugin.description().format == row.format)
        };
        let repository = known.facts.repository.as_ref().filter(of_claim);
        let of_format = |row: &RepositoryRow| self.app.runtime.plugin(&row.format);
        let plugin = claim.as_ref().map(|claim| Arc::clone(&claim.plugin));
        let plugin = plugin.or_else(|| repository.and_then(of_format));
        let description = plugin.as_ref().map(|plugin| plugin.description());
        visit.speak_as(description);
        if below.encoded_slash && !description.is_some_and(|description| description.encoded_slash) {
            return Err(Refused::with(
                &catalogue::MALFORMED_ADDRESS,
                "a path segment may not hold an encoded slash here",
            ));
        }

        let on = |plugin: &&Plugin| self.app.enabled(&plugin.description().format, known.facts.enabled);
        let serving = plugin.as_deref().filter(on);
        let Some(plugin) = serving else {
            let wanted = authorize::wanted_by_method(parts.method.as_str());
            let facts = repository.map(|row| authorize::facts(row, false));
            authorize::authorize(&known.presented, &authorize::rules(description), wanted, facts, now)?;
            return Err(Refused::of(&catalogue::FORMAT_DISABLED));
        };
        let template = claim.as_ref().and_then(|claim| claim.challenge.as_deref());
        let words = plugin.description().token_service.as_ref();
        let scopes = template.zip(words).map(|(template, words)| Scopes::new(template, words));
        let circumstances = Circumstances {
            base_url: &visit.base_url,
            caller: known.caller.clone(),
            request_id: &visit.request_id,
        };
        let tokens = identify::tokens_in(&self.app, &known, organization.id, (&below.path, &query)).await?;
        let head = head::head(parts, below, query, plugin.description(), (circumstances, &tokens));
        let (app, known, peer) = (&self.app, &known, visit.peer);
        let prepared = match (repository, name) {
            (Some(repository), _) => {
                let asking = Asking { app, parts, repository, plugin, known, peer, scopes, head, now };
                asking.answer(&self.answers, body).await?
            }
            (None, name) => {
                let unnamed = Unnamed {
                    app,
                    parts,
                    plugin,
                    known,
                    organization: organization.id,
                    peer,
                    scopes,
                    head,
                    now,
                };
                match name {
                    Some(name) => return Err(unnamed.absent(&name).await),
                    None => unnamed.answer(body).await?,
                }
            }
        };
        let asked = Asked {
            head: parts.method == Method::HEAD,
            reads: parts.method == Method::HEAD || parts.method == Method::GET,
            headers: &parts.headers,
            request_id: &visit.request_id,
        };
        Ok(send::respond(&prepared, asked))
    }
}

impl Visit {
    /// Refusals look as the format's description wants them from here on.
    fn speak_as(&mut self, description: Option<&Description>) {
        self.style = description.map_or(ErrorStyle::Plain, |description| description.error_style);
        let bearer = description.filter(|description| description.challenge == Challenge::Bearer);
        self.token_service =
            bearer.and_then(|description| Some(description.token_service.as_ref()?.path.clone()));
    }
}

/// The bare host says what it is, and to whom does not matter.
fn bare(parts: &Parts) -> Result<Response<Body>, Refused> {
    let body = match parts.method {
        Method::GET => Body::full(Bytes::from_static(b"Packhouse: a package repository server\n")),
        Method::HEAD => Body::empty(),
        _ => return Err(Refused::method_not_allowed("GET, HEAD")),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(response)
}

#[cfg(test)]
mod tests;
