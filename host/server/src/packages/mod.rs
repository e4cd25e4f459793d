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
mod send;
mod shape;

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
use packhouse_runtime::{ErrorStyle, Plugin};
use packhouse_store::{LookUp, OrganizationId, OrganizationRow, Refusal, RepositoryRow};
use tokio::net::TcpListener;

use self::answer::Asking;
use self::head::Circumstances;
use self::identify::Credential;
use self::kept::Answers;
pub(crate) use self::receive::Arriving;
use self::resolve::{Below, Place, Target};
use self::send::Asked;
use self::shape::{Frame, Refused};
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
            style: ErrorStyle::Plain,
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
        let frame = Frame {
            style: visit.style,
            realm: organizations::realm(&base_url),
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
        let below = match place {
            Place::Bare => return bare(parts),
            Place::Nowhere => return Err(Refused::of(&catalogue::UNAUTHORIZED)),
            Place::NotEnabled => return Err(Refused::of(&catalogue::NOT_ENABLED)),
            Place::Repository(below) => below,
        };
        if let Some((plugin, _)) = &below.claim {
            // What goes wrong before the repository is known is told in the style of whose path it is.
            visit.style = plugin.description().error_style;
        }
        let organization = self.organizations.find(&self.app, host.as_deref()).await?;
        visit.base_url = organizations::base_url(&self.app, organization.as_ref(), host.as_deref());
        match organization {
            Some(organization) => self.serve_below(parts, body, visit, (organization, below, query)).await,
            None => Err(Refused::of(&catalogue::UNAUTHORIZED)),
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
        let credential = Credential::read(&parts.headers);
        visit.organization = Some(organization.id);
        let known =
            identify::identify(&self.app, organization.id, &below.name, credential, visit.peer).await?;
        visit.credential.clone_from(&known.credential);
        visit.caller.clone_from(&known.caller);
        let now = packhouse_store::now_ms();

        let claimed = below.claim.as_ref().map(|(plugin, _)| Arc::clone(plugin));
        let of_format = |row: &RepositoryRow| self.app.runtime.plugin(&row.format);
        let plugin = claimed.or_else(|| known.facts.repository.as_ref().and_then(of_format));
        let description = plugin.as_ref().map(|plugin| plugin.description());
        visit.style = description.map_or(ErrorStyle::Plain, |description| description.error_style);
        if below.encoded_slash && !description.is_some_and(|description| description.encoded_slash) {
            return Err(Refused::with(
                &catalogue::INVALID_REQUEST,
                "A path segment may not hold an encoded slash here.",
            ));
        }

        let repository = known.facts.repository.as_ref();
        let serving = plugin.as_deref().filter(|plugin| self.serves(&known.facts, plugin));
        let (Some(repository), Some(plugin)) = (repository, serving) else {
            let wanted = authorize::wanted_by_method(parts.method.as_str());
            authorize::authorize(&known, &authorize::rules(description), wanted, false, now)?;
            return Err(Refused::of(&catalogue::FORMAT_DISABLED));
        };
        let circumstances = Circumstances {
            base_url: &visit.base_url,
            caller: known.caller.clone(),
            request_id: &visit.request_id,
        };
        let head = head::head(parts, below, query, plugin.description(), circumstances);
        let asking =
            Asking { app: &self.app, parts, repository, plugin, known: &known, peer: visit.peer, head, now };
        let prepared = asking.answer(&self.answers, body).await?;
        let asked = Asked {
            head: parts.method == Method::HEAD,
            reads: parts.method == Method::HEAD || parts.method == Method::GET,
            headers: &parts.headers,
            request_id: &visit.request_id,
        };
        Ok(send::respond(&prepared, asked))
    }

    /// Whether this plugin serves this repository at present. A claim leads to repositories of its own format alone.
    fn serves(&self, facts: &LookUp, plugin: &Plugin) -> bool {
        let format = plugin.description().format.as_str();
        facts.repository.as_ref().is_some_and(|row| row.format == format)
            && self.app.enabled(format, facts.enabled)
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
