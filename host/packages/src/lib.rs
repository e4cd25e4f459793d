//! The repository host: one request from its head to its answer. The steps stand in [`Packages::answer`],
//! [`Packages::serve_below`] and [`Asking::answer`] in the order in which they happen, each in a file of its own.

mod answer;
mod authorize;
mod call;
mod error_body;
mod head;
mod health;
mod identify;
mod kept;
mod log;
mod members;
mod multipart;
mod names;
mod organizations;
mod receive;
mod repositories;
mod resolve;
mod scope;
mod send;
mod services;
mod shape;
mod stranger;
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
use packhouse_runtime::{AuthorizationForm, ChallengeScheme, Description, ErrorFormat, Plugin};
use packhouse_store::{OrganizationId, OrganizationRow, Refusal, RepositoryRow};
use tokio::net::TcpListener;

use self::answer::Asking;
use self::head::Circumstances;
use self::identify::Credential;
pub use self::identify::Known;
use self::kept::Answers;
pub use self::names::withheld as withheld_names;
use self::resolve::{Below, Place, Target};
use self::scope::Scopes;
use self::send::Asked;
use self::shape::{Addresses, Frame, Refused};
use self::stranger::Stranger;
use self::unnamed::Unnamed;
use packhouse_app::App;
use packhouse_identity::access;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;
use packhouse_wire::client_address::caller;
use packhouse_wire::connection::ConnectionState;
use packhouse_wire::incoming_body::IncomingBody;
use packhouse_wire::listen::{self, NoPlace};
use packhouse_wire::request_id;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is told of a repository whose format no loaded plugin has: nobody switched it off.
const NOT_LOADED: &str =
    "No plugin for this format is loaded; the server's operator finds why in its log and on /readyz.";

/// The repository host's state.
struct Packages {
    app: Arc<App>,
    answers: Answers,
    organizations: organizations::Organizations,
}

/// What is found out about a request on its way, for its answer's shape and its line in the log.
struct Visit {
    request_id: String,
    peer: IpAddr,
    /// How the format's refusals look, where one is known by now.
    error_format: Arc<ErrorFormat>,
    /// Whether a 401 asks for what the format says; else for `Basic`.
    own_challenge: bool,
    base_url: String,
    credential: Option<String>,
    /// The format that it turned out to be about, for the metrics.
    format: Option<String>,
    /// Whose the credential is.
    caller: Option<String>,
    organization: Option<OrganizationId>,
}

/// Serves the repository host on this listener until the program stops and what was in flight is answered.
pub async fn run(app: Arc<App>, listener: TcpListener) {
    let rules = app.rules(listen::Windows::UPLOADS).with_requests(app.shares.requests);
    let packages = Arc::new(Packages::new(app));
    let service = move |peer: SocketAddr| {
        let packages = Arc::clone(&packages);
        service_fn(move |request| {
            let packages = Arc::clone(&packages);
            async move { Ok::<_, Infallible>(packages.serve(peer.ip(), request).await) }
        })
    };
    listen::serve(listener, rules, service).await;
}

impl Packages {
    /// A host for this program's repositories.
    fn new(app: Arc<App>) -> Self {
        Self {
            answers: Answers::new(app.shares.kept_files),
            app,
            organizations: organizations::Organizations::default(),
        }
    }

    /// Answers a request; every failure is an answer too.
    async fn serve(&self, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        let started = Instant::now();
        let meters = &self.app.meters.packages;
        let ticket = meters.under_way.begin();
        let (parts, body) = request.into_parts();
        let mut visit = Visit {
            request_id: request_id::next(),
            peer: caller(peer, &parts.headers, &self.app.config.trusted_proxies),
            error_format: resolve::error_format(parts.uri.path(), &self.app.runtime),
            own_challenge: false,
            base_url: String::new(),
            credential: None,
            format: None,
            caller: None,
            organization: None,
        };
        let mut body = IncomingBody::new(body, self.app.config.limits.body_idle);
        let outcome = match parts.extensions.get::<NoPlace>() {
            Some(NoPlace) => Err(Refused::of(&catalogue::SERVER_BUSY)),
            None => self.answer(&parts, &mut body, &mut visit).await,
        };
        let mut response = match outcome {
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
        meters.answered(visit.format.as_deref(), &parts.method, response.status(), started.elapsed());
        log::line(&parts, &response, &visit, started.elapsed());
        response.map(|body| body.with_ticket(ticket))
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
        let ErrorFormat { template, challenge, token_service } = visit.error_format.as_ref();
        let token_service = token_service.as_ref().map(|path| format!("{base_url}{path}"));
        let basic = ChallengeScheme::basic();
        let api_url = self.app.api_url();
        let addresses = Addresses {
            host: organizations::realm(&base_url),
            base_url: &base_url,
            api_url: &api_url,
            token_service: token_service.as_deref(),
        };
        let frame = Frame {
            template,
            challenge: if visit.own_challenge { challenge } else { &basic },
            addresses,
            request_id: &visit.request_id,
            head: parts.method == Method::HEAD,
        };
        shape::answer(refused, frame)
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: &mut IncomingBody,
        visit: &mut Visit,
    ) -> Result<Response<Body>, Refused> {
        let Target { host, place, query } = resolve::resolve(parts, &self.app.runtime)?;
        match &place {
            Place::Bare => return bare(parts),
            Place::Health(health) => return health::answer(&self.app, *health, parts),
            Place::Nowhere => return Err(Refused::of(&catalogue::UNAUTHORIZED)),
            Place::NotEnabled => return Err(Refused::of(&catalogue::NOT_ENABLED)),
            Place::TokenService(_) | Place::Below(_) | Place::Repositories => (),
        }
        let organization = self.organizations.find(&self.app, host.as_deref()).await?;
        visit.base_url = organizations::base_url(&self.app, organization.as_ref(), host.as_deref());
        let Some(organization) = organization else { return Err(Refused::of(&catalogue::UNAUTHORIZED)) };
        match place {
            Place::Below(below) => self.serve_below(parts, body, visit, (organization, below, query)).await,
            Place::TokenService(plugin) => {
                // Whoever is refused here shall show a password, not ask for a bearer.
                visit.error_format = Arc::clone(&plugin.description().error_format);
                visit.format = Some(plugin.description().format.clone());
                visit.organization = Some(organization.id);
                let service = token_service::Service { app: &self.app, plugin: &plugin, peer: visit.peer };
                let (answer, credential) = service.answer(parts, query, body, organization.id).await?;
                visit.credential = credential;
                Ok(answer)
            }
            Place::Repositories => {
                let list = repositories::List {
                    app: &self.app,
                    parts,
                    query: &query,
                    organization: organization.id,
                };
                list.answer(visit).await
            }
            Place::Bare | Place::Health(_) | Place::Nowhere | Place::NotEnabled => {
                Err(Refused::of(&catalogue::UNAUTHORIZED))
            }
        }
    }

    /// From here on the organization is known, and a path below what may be a repository of it.
    async fn serve_below(
        &self,
        parts: &Parts,
        body: &mut IncomingBody,
        visit: &mut Visit,
        (organization, below, query): (OrganizationRow, Below, Vec<(String, String)>),
    ) -> Result<Response<Body>, Refused> {
        let presented = Credential::read(&parts.headers);
        let bears = matches!(presented, Credential::Bearer(_));
        visit.organization = Some(organization.id);
        let claim = below.claim.clone();
        let claimed = claim.as_ref().map(|claim| claim.plugin.description());
        let form = presented.form();
        let credential = match claimed {
            Some(description) => presented.taken_by(description),
            None => presented,
        };
        let credential = (credential, visit.peer);
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
        let known = match claimed {
            Some(_) => known,
            None => {
                self.unless_uncounted(known, form, (organization.id, name.as_deref(), visit.peer)).await?
            }
        };
        let known = Arc::new(known);
        visit.credential.clone_from(&known.credential);
        visit.caller.clone_from(&known.caller);
        let now = packhouse_store::now_ms();

        // A claim leads to repositories of its own format alone.
        let of_claim = |row: &&RepositoryRow| {
            claim.as_ref().is_none_or(|claim| claim.plugin.description().format == row.format)
        };
        let repository = known.facts.repository.as_ref().filter(of_claim);
        let public = repository.is_some_and(|row| row.public);
        if claim.is_none() && !public && access::is_stranger(&known.presented, now) {
            let stranger = Stranger {
                app: &self.app,
                parts,
                below: &below,
                query: &query,
                known: &known,
                organization: organization.id,
                peer: visit.peer,
                base_url: &visit.base_url,
                request_id: &visit.request_id,
                bears,
            };
            if !stranger.makes_sense().await? {
                return Err(encoded_slash());
            }
            let Some(opened) = stranger.opened().await? else { return Err(stranger.refusal().await) };
            if repository.is_none_or(|row| row.format != opened.plugin.description().format) {
                visit.error_format = Arc::clone(&opened.plugin.description().error_format);
                let prepared = stranger.offer(opened, body).await?;
                return Ok(send::respond(&prepared, asked(parts, &visit.request_id)).await?);
            }
        }
        let of_format = |row: &RepositoryRow| self.app.runtime.plugin(&row.format);
        let plugin = claim.as_ref().map(|claim| Arc::clone(&claim.plugin));
        let plugin = plugin.or_else(|| repository.and_then(of_format));
        let description = plugin.as_ref().map(|plugin| plugin.description());
        visit.speak_as(description);
        if below.encoded_slash && !description.is_some_and(|description| description.encoded_slash) {
            return Err(encoded_slash());
        }

        let on = |plugin: &&Plugin| self.app.enabled(&plugin.description().format, known.facts.enabled);
        let serving = plugin.as_deref().filter(on);
        let Some(plugin) = serving else {
            let wanted = authorize::wanted_by_method(parts.method.as_str());
            let facts = repository.map(|row| authorize::facts(row, false));
            let rules = authorize::rules(description);
            let judged = authorize::authorize(&known.presented, &rules, wanted, facts, now);
            let refused = judged.err().unwrap_or_else(|| Refused::of(&catalogue::FORMAT_DISABLED));
            let not_loaded = plugin.is_none() && refused.is_of(&catalogue::FORMAT_DISABLED);
            return Err(if not_loaded { refused.in_words(NOT_LOADED) } else { refused });
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
        Ok(send::respond(&prepared, asked(parts, &visit.request_id)).await?)
    }
}

impl Packages {
    /// What is known of a credential at a repository's own address, where the format is known only now: whose form does not count
    /// there is a credential that nobody knows.
    async fn unless_uncounted(
        &self,
        known: Known,
        form: Option<AuthorizationForm>,
        (organization, name, peer): (OrganizationId, Option<&str>, IpAddr),
    ) -> Result<Known, Refused> {
        let format = known.facts.repository.as_ref().map(|row| row.format.as_str());
        let plugin = format.and_then(|format| self.app.runtime.plugin(format));
        if form.is_none_or(|form| identify::counts(form, plugin.as_ref().map(|plugin| plugin.description())))
        {
            return Ok(known);
        }
        let nobody = (Credential::Unreadable, peer);
        identify::identify(&self.app, organization, name.unwrap_or_default(), nobody, None).await
    }
}

fn encoded_slash() -> Refused {
    Refused::with(&catalogue::MALFORMED_ADDRESS, "a path segment may not hold an encoded slash here")
}

/// What an answer is sent by.
fn asked<'a>(parts: &'a Parts, request_id: &'a str) -> Asked<'a> {
    Asked {
        head: parts.method == Method::HEAD,
        reads: parts.method == Method::HEAD || parts.method == Method::GET,
        headers: &parts.headers,
        request_id,
        connection: parts.extensions.get::<Arc<ConnectionState>>(),
    }
}

impl Visit {
    /// Refusals look as the format's description wants them from here on.
    fn speak_as(&mut self, description: Option<&Description>) {
        self.error_format =
            description.map_or_else(Arc::default, |description| Arc::clone(&description.error_format));
        self.own_challenge = true;
        self.format = description.map(|description| description.format.clone());
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
