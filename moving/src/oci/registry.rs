//! Client for a registry by the distribution specification, with the tokens that registries
//! require.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LINK, WWW_AUTHENTICATE};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use url::Url;

use super::manifest::Manifest;
use crate::client::{Client, opened, refused, unreachable, whole};
use crate::error::{MoveError, again};
use crate::origin::Opens;
use crate::report::MoveOutcome;
use crate::secret::{Credential, CredentialKind, Secret};
use crate::server::Server;
use crate::stream::ByteSource;
use crate::target::{MoveRun, Parcel, PublishedAt, published, sized};

const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.oci.artifact.manifest.v1+json, */*;q=0.1";
const MAX_PAGES: usize = 10_000;

/// A registry, or the part of a registry below a prefix.
#[derive(Debug)]
pub(crate) struct Registry {
    client: Client,
    /// Prefix of all image names. It ends with a slash or is empty.
    prefix: String,
    tokens: Mutex<HashMap<String, Secret>>,
}

impl Registry {
    /// The registry whose `/v2/` is below this client's address.
    pub(crate) fn new(client: Client, prefix: &str) -> Registry {
        Registry { client, prefix: prefix.to_owned(), tokens: Mutex::default() }
    }

    /// The registry of a repository on a Packhouse server.
    pub(crate) fn of_server(server: &Server) -> Result<Registry, MoveError> {
        let root = server.client.base().origin().ascii_serialization();
        let client = Client::new(&root, server.client.credential().cloned());
        let client = client.map_err(|error| MoveError::Refused(error.to_string()))?;
        Ok(Registry::new(client, &format!("repositories/{}/", server.name)))
    }

    fn url(&self, image: &str, rest: &str) -> Result<Url, MoveError> {
        self.client.url(&format!("v2/{}{image}/{rest}", self.prefix))
    }

    /// Sends a request. If the registry requires a token, gets one and sends the request again.
    async fn send(
        &self,
        make: &(dyn Fn(RequestBuilder) -> RequestBuilder + Sync),
        method: Method,
        url: &Url,
    ) -> Result<Response, MoveError> {
        self.client.check(url)?;
        let key = format!("{} {}", scope_key(url), method == Method::GET || method == Method::HEAD);
        let known = || self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let with = |token: Option<Secret>| match token {
            Some(token) => self.client.bare(method.clone(), url).bearer_auth(token.reveal()),
            None => self.client.bare(method.clone(), url),
        };
        let answer = make(with(known())).send().await.map_err(|error| unreachable(&error))?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let Some(challenge) = challenge.and_then(bearer) else {
            return make(self.client.request(method, url)).send().await.map_err(|error| unreachable(&error));
        };
        let token = self.token(&challenge).await?;
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).insert(key, token.clone());
        make(with(Some(token))).send().await.map_err(|error| unreachable(&error))
    }

    /// Sends a request like [`send`](Self::send). A response that is not a success is an error.
    async fn good(
        &self,
        make: &(dyn Fn(RequestBuilder) -> RequestBuilder + Sync),
        method: Method,
        url: &Url,
    ) -> Result<Response, MoveError> {
        let answer = self.send(make, method, url).await?;
        if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) }
    }

    async fn token(&self, challenge: &HashMap<String, String>) -> Result<Secret, MoveError> {
        let realm = challenge.get("realm").map(String::as_str).unwrap_or_default();
        let mut url = self.client.url(realm)?;
        for name in ["service", "scope"] {
            if let Some(value) = challenge.get(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.client.check(&url)?;
        let request = self.client.bare(Method::GET, &url);
        // The realm is the token service that the challenge names. It may be on another host than
        // the registry, like that of the largest public registry.
        let request = match self.client.credential() {
            Some(Credential(CredentialKind::Login { name, password }))
                if is_trusted(self.client.base(), &url) =>
            {
                request.basic_auth(name, Some(password.reveal()))
            }
            Some(Credential(CredentialKind::Token(token))) if is_trusted(self.client.base(), &url) => {
                request.bearer_auth(token.reveal())
            }
            _ => request,
        };
        let answer = request.send().await.map_err(|error| unreachable(&error))?;
        if !answer.status().is_success() {
            return Err(refused(answer).await);
        }
        let json = whole(answer).await?.json()?;
        let token = ["token", "access_token"].iter().find_map(|member| json.get(*member)?.as_str());
        token
            .map(Secret::new)
            .ok_or_else(|| MoveError::Credential("the response of the token service has no token".to_owned()))
    }

    async fn json(&self, url: &Url) -> Result<(Value, Option<Url>), MoveError> {
        let document = again(|| async {
            whole(self.good(&|request| request.header(ACCEPT, "application/json"), Method::GET, url).await?)
                .await
        })
        .await?;
        let next = document.headers.get(LINK).and_then(|value| value.to_str().ok()).and_then(next_in);
        Ok((document.json()?, next.and_then(|next| document.url.join(&next).ok())))
    }

    async fn names(&self, first: Url, member: &str) -> Result<Vec<String>, MoveError> {
        let (mut names, mut next) = (Vec::new(), Some(first));
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else { break };
            let (page, after) = self.json(&url).await?;
            let all = page.get(member).and_then(Value::as_array).into_iter().flatten();
            names.extend(all.filter_map(|name| name.as_str().map(str::to_owned)));
            next = after;
        }
        Ok(names)
    }

    /// The names of all images.
    pub(crate) async fn catalog(&self) -> Result<Vec<String>, MoveError> {
        match self.names(self.client.url("v2/_catalog?n=1000")?, "repositories").await {
            Ok(names) => Ok(names
                .iter()
                .filter_map(|name| name.strip_prefix(&self.prefix))
                .map(str::to_owned)
                .collect()),
            Err(MoveError::Missing(text) | MoveError::Refused(text)) => Err(MoveError::Refused(format!(
                "{text}; the registry does not list its images; name them with --package or --packages-file"
            ))),
            Err(fault) => Err(fault),
        }
    }

    /// The tags of an image.
    pub(crate) async fn tags(&self, image: &str) -> Result<Vec<String>, MoveError> {
        self.names(self.url(image, "tags/list?n=1000")?, "tags").await
    }

    /// Reads a manifest by its tag or digest.
    pub(crate) async fn manifest(&self, image: &str, reference: &str) -> Result<Manifest, MoveError> {
        let url = self.url(image, &format!("manifests/{reference}"))?;
        let document = again(|| async {
            whole(self.good(&|request| request.header(ACCEPT, MANIFESTS), Method::GET, &url).await?).await
        })
        .await?;
        let header = |name: &str| document.headers.get(name).and_then(|value| value.to_str().ok());
        let expected = Some(reference).filter(|reference| reference.contains(':'));
        let expected = expected
            .or_else(|| header("docker-content-digest").filter(|digest| digest.starts_with("sha256:")));
        let modified = header("last-modified").and_then(|text| httpdate::parse_http_date(text).ok());
        let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
        Manifest::checked(document.bytes.clone(), document.media_type(), expected, modified)
    }

    /// The digest of the manifest under a tag or digest. `None` if there is no such manifest.
    pub(crate) async fn digest(&self, image: &str, reference: &str) -> Result<Option<String>, MoveError> {
        let url = self.url(image, &format!("manifests/{reference}"))?;
        let response =
            again(|| self.good(&|request| request.header(ACCEPT, MANIFESTS), Method::HEAD, &url)).await;
        match response {
            Ok(answer) => {
                let digest =
                    answer.headers().get("docker-content-digest").and_then(|value| value.to_str().ok());
                Ok(Some(digest.unwrap_or_default().to_owned()))
            }
            Err(MoveError::Missing(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Digests of the manifests that refer to a manifest. Empty if the registry does not support
    /// this query. Referrers that have tags are then still moved, together with their tags.
    pub(crate) async fn referrers(&self, image: &str, digest: &str) -> Result<Vec<String>, MoveError> {
        let (mut all, mut next) = (Vec::new(), Some(self.url(image, &format!("referrers/{digest}"))?));
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else { break };
            let (page, after) = match self.json(&url).await {
                Err(MoveError::Missing(_) | MoveError::Refused(_)) => break,
                page => page?,
            };
            let manifests = page.get("manifests").and_then(Value::as_array).into_iter().flatten();
            all.extend(manifests.filter_map(|one| Some(one.get("digest")?.as_str()?.to_owned())));
            next = after;
        }
        Ok(all)
    }

    /// Opens a blob.
    async fn open(&self, image: &str, digest: &str) -> Result<ByteSource, MoveError> {
        let url = self.url(image, &format!("blobs/{digest}"))?;
        opened(self.good(&|request| request, Method::GET, &url).await?)
    }

    /// Uploads a manifest under a tag or its digest. If the server does not support the time
    /// `unknown`, uploads it again without a time.
    pub(crate) async fn put(
        &self,
        image: &str,
        reference: &str,
        manifest: &Manifest,
        at: PublishedAt,
    ) -> Result<(), MoveError> {
        let url = self.url(image, &format!("manifests/{reference}"))?;
        let mut at = at;
        loop {
            let make = move |request: RequestBuilder| {
                published(request.header(CONTENT_TYPE, &manifest.media_type), at).body(manifest.bytes.clone())
            };
            match again(|| self.good(&make, Method::PUT, &url)).await.map(drop) {
                Err(fault) if at.rejects_unknown(&fault) => at = PublishedAt::NotStated,
                put => return put,
            }
        }
    }

    /// Pushes a blob, unless the registry has it. Begins an upload session, and sends all bytes in
    /// the request that ends the session.
    pub(crate) async fn push(
        &self,
        run: &MoveRun,
        image: &str,
        digest: &str,
        parcel: &Parcel,
    ) -> Result<MoveOutcome, MoveError> {
        let blob = self.url(image, &format!("blobs/{digest}"))?;
        match again(|| self.good(&|request| request, Method::HEAD, &blob)).await {
            Ok(_) => return Ok(MoveOutcome::Present),
            Err(MoveError::Missing(_)) => {}
            Err(fault) => return Err(fault),
        }
        let uploads = self.url(image, "blobs/uploads/")?;
        let empty = |request: RequestBuilder| request.header(CONTENT_LENGTH, 0);
        let begun = again(|| self.good(&empty, Method::POST, &uploads)).await?;
        let location =
            begun.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut session = begun
            .url()
            .join(location)
            .map_err(|_| MoveError::Refused("the upload session has no valid address".to_owned()))?;
        session.query_pairs_mut().append_pair("digest", digest);
        let key = format!("{} false", scope_key(&session));
        let token = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        run.send(parcel, |body, length, _| {
            let request = match &token {
                Some(token) => self.client.bare(Method::PUT, &session).bearer_auth(token.reveal()),
                None => self.client.request(Method::PUT, &session),
            };
            sized(request, length)
                .header(CONTENT_TYPE, "application/octet-stream")
                .body(Body::wrap_stream(body))
        })
        .await?;
        Ok(MoveOutcome::Moved)
    }
}

/// A blob of an image in a registry.
#[derive(Debug)]
pub(super) struct RegistryBlob {
    registry: Arc<Registry>,
    image: String,
    digest: String,
}

impl RegistryBlob {
    pub(super) fn of(registry: &Arc<Registry>, image: &str, digest: &str) -> RegistryBlob {
        RegistryBlob { registry: Arc::clone(registry), image: image.to_owned(), digest: digest.to_owned() }
    }
}

impl Opens for RegistryBlob {
    fn open(&self) -> BoxFuture<'_, Result<ByteSource, MoveError>> {
        self.registry.open(&self.image, &self.digest).boxed()
    }
}

/// Reports whether a credential may be sent to a realm: over TLS, or if the registry itself has no
/// TLS.
fn is_trusted(registry: &Url, realm: &Url) -> bool {
    realm.scheme() == "https" || registry.scheme() == "http"
}

/// The part of an address that a token is valid for: everything before the kind of content.
fn scope_key(url: &Url) -> String {
    let path = url.path();
    let end =
        ["/manifests/", "/blobs/", "/tags/", "/referrers/"].iter().filter_map(|mark| path.find(mark)).min();
    format!(
        "{}{}",
        url.origin().ascii_serialization(),
        path.get(..end.unwrap_or(path.len())).unwrap_or_default()
    )
}

/// Parses the parameters of a Bearer challenge.
fn bearer(challenge: &str) -> Option<HashMap<String, String>> {
    let (scheme, rest) = challenge.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut found, mut rest) = (HashMap::new(), rest);
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.insert(name, value.to_owned());
        rest = left;
    }
    Some(found)
}

/// The target of `rel="next"` in a `Link` header.
fn next_in(link: &str) -> Option<String> {
    let one = link.split(',').find(|one| one.contains("rel=\"next\"") || one.contains("rel=next"))?;
    Some(one.split_once('<')?.1.split_once('>')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_and_links_are_read() {
        let found =
            bearer(r#"Bearer realm="http://a/token?x=1,2",service="a b",scope="repository:x:pull,push""#)
                .unwrap();
        assert_eq!(found["realm"], "http://a/token?x=1,2");
        assert_eq!(found["scope"], "repository:x:pull,push");
        assert!(bearer("Basic realm=\"x\"").is_none());
        assert_eq!(next_in("</v2/x?last=a>; rel=\"next\"").as_deref(), Some("/v2/x?last=a"));
        let url = Url::parse("http://h/v2/a/b/blobs/uploads/1").unwrap();
        assert_eq!(scope_key(&url), "http://h/v2/a/b");
    }
}
