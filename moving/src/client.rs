//! HTTP as a client: requests with a credential that goes to its own server alone, answers with bounds, failures as sentences.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures::StreamExt as _;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, HeaderMap, LAST_MODIFIED, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use url::Url;

use crate::fault::{Fault, again};
use crate::reach::Reach;
use crate::secret::{Credential, Shown};
use crate::stream::Opened;

/// Bytes of a document that is read as a whole: the packument of a package with thousands of versions has tens of millions.
pub(crate) const MOST_OF_A_DOCUMENT: usize = 256 << 20;
/// Bytes of an error's answer that are looked at.
const MOST_OF_AN_ERROR: usize = 16 << 10;
/// Characters of what a server says, in a sentence of ours.
const MOST_SAID: usize = 300;
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// How long a server may say nothing.
const READ_WITHIN: Duration = Duration::from_secs(120);

/// A server, and what is shown to it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    inner: reqwest::Client,
    base: Url,
    reach: Reach,
    credential: Option<Credential>,
}

/// A document that was read as a whole.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) headers: HeaderMap,
    /// Where it was in the end.
    pub(crate) url: Url,
}

impl Document {
    /// It as text; what is no UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// It as JSON.
    pub(crate) fn json(&self) -> Result<Value, Fault> {
        serde_json::from_slice(&self.bytes)
            .map_err(|error| Fault::Refused(format!("{} sent what is no JSON: {error}", shown(&self.url))))
    }

    /// Its media type without parameters.
    pub(crate) fn media_type(&self) -> &str {
        let whole = self.headers.get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        whole.unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }
}

impl Client {
    /// For the server of this address. Requests to others show no credential.
    ///
    /// # Errors
    /// For what is no address of http or https, or holds a credential.
    pub(crate) fn new(base: &str, credential: Option<Credential>) -> anyhow::Result<Client> {
        Client::leading_to(base, credential, &[])
    }

    /// The same; redirects and links of the server may lead to these hosts too, whatever addresses they have.
    ///
    /// # Errors
    /// For what is no address of http or https, or holds a credential.
    pub(crate) fn leading_to(
        base: &str,
        credential: Option<Credential>,
        hosts: &[String],
    ) -> anyhow::Result<Client> {
        let mut base = Url::parse(base).with_context(|| format!("`{base}` is no address"))?;
        ensure!(matches!(base.scheme(), "http" | "https"), "`{base}` is no address of http or https");
        ensure!(
            base.username().is_empty() && base.password().is_none(),
            "an address holds no credential: everybody on this machine can read it there; use a file or the environment"
        );
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let reach = Reach::of(&base, hosts);
        let inner = reqwest::Client::builder()
            .redirect(reach.redirects())
            .dns_resolver(Arc::new(reach.clone()))
            .user_agent(concat!("packhouse/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .read_timeout(READ_WITHIN)
            .build()
            .context("failed to prepare connections")?;
        Ok(Client { inner, base, reach, credential })
    }

    /// The same server with another credential.
    pub(crate) fn showing(&self, credential: Credential) -> Client {
        Client { credential: Some(credential), ..self.clone() }
    }

    /// The address, with a slash at its end.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// What is shown to it.
    pub(crate) fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// An address below the server's, or another where the text is a whole one.
    pub(crate) fn url(&self, path: &str) -> Result<Url, Fault> {
        self.base.join(path).map_err(|error| Fault::Refused(format!("`{path}` is no address: {error}")))
    }

    /// Passes an address to which the server may lead.
    pub(crate) fn check(&self, url: &Url) -> Result<(), Fault> {
        self.reach.check(url).map_err(Fault::Refused)
    }

    /// A request, with the credential where it goes to the server itself.
    pub(crate) fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        let request = self.inner.request(method, url.clone());
        match self.credential.as_ref().filter(|_| url.origin() == self.base.origin()) {
            Some(Credential(Shown::Login { name, password })) => {
                request.basic_auth(name, Some(password.reveal()))
            }
            Some(Credential(Shown::Token(token))) => request.bearer_auth(token.reveal()),
            None => request,
        }
    }

    /// A request without the credential.
    pub(crate) fn bare(&self, method: Method, url: &Url) -> RequestBuilder {
        self.inner.request(method, url.clone())
    }

    /// Opens what is there to be read in pieces.
    pub(crate) async fn open(&self, url: &Url) -> Result<Opened, Fault> {
        self.check(url)?;
        opened(checked(self.request(Method::GET, url)).await?)
    }

    /// Reads a document, again where trying again can help.
    pub(crate) async fn document(&self, url: &Url, accept: &str) -> Result<Document, Fault> {
        self.check(url)?;
        again(|| async { whole(checked(self.request(Method::GET, url).header(ACCEPT, accept)).await?).await })
            .await
    }

    /// Reads a JSON document.
    pub(crate) async fn json(&self, url: &Url) -> Result<Value, Fault> {
        self.document(url, "application/json").await?.json()
    }

    /// Sends JSON once, and reads what is answered: for what a person waits for.
    pub(crate) async fn send_once(&self, method: Method, url: &Url, body: &Value) -> Result<Value, Fault> {
        let request =
            self.request(method, url).header("content-type", "application/json").body(body.to_string());
        whole(checked(request).await?).await?.json()
    }

    /// Sends JSON, and reads what is answered; null for nothing.
    pub(crate) async fn send_json(&self, method: Method, url: &Url, body: &Value) -> Result<Value, Fault> {
        let request = || {
            self.request(method.clone(), url)
                .header("content-type", "application/json")
                .body(body.to_string())
        };
        let answer = again(|| async { whole(checked(request()).await?).await }).await?;
        if answer.bytes.is_empty() { Ok(Value::Null) } else { answer.json() }
    }

    /// The headers of what is there; none where nothing is.
    pub(crate) async fn head(&self, url: &Url, accept: &str) -> Result<Option<HeaderMap>, Fault> {
        self.check(url)?;
        let asked = again(|| checked(self.request(Method::HEAD, url).header(ACCEPT, accept))).await;
        match asked {
            Ok(answer) => Ok(Some(answer.headers().clone())),
            Err(Fault::Missing(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// Sends a request; an answer that is no success is a fault.
pub(crate) async fn checked(request: RequestBuilder) -> Result<Response, Fault> {
    let answer = request.send().await.map_err(|error| unreachable(&error))?;
    if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) }
}

/// The body of an answer, to be read in pieces.
pub(crate) fn opened(answer: Response) -> Result<Opened, Fault> {
    let modified =
        answer.headers().get(LAST_MODIFIED).and_then(|value| value.to_str().ok()).and_then(http_date);
    let length = answer.content_length();
    let stream = answer.bytes_stream().map(|piece| piece.map_err(|error| unreachable(&error))).boxed();
    Ok(Opened { stream, length, modified })
}

/// The body of an answer as a whole.
pub(crate) async fn whole(mut answer: Response) -> Result<Document, Fault> {
    let (headers, url) = (answer.headers().clone(), answer.url().clone());
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(&error))? {
        if bytes.len() + piece.len() > MOST_OF_A_DOCUMENT {
            return Err(Fault::Refused(format!("{} sends more than a document may have", shown(&url))));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Document { bytes: bytes.into(), headers, url })
}

fn http_date(text: &str) -> Option<Timestamp> {
    Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()
}

/// An address as it may be printed: what stands in a query may be a credential.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// A request that got no answer, or half of one.
pub(crate) fn unreachable(error: &reqwest::Error) -> Fault {
    let mut causes = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    let of = error.url().map(shown).unwrap_or_default();
    let cause = causes.pop().unwrap_or_else(|| "the connection broke".to_owned());
    if error.is_redirect() {
        return Fault::Refused(format!("{of} is not followed: {cause}"));
    }
    let what = if error.is_connect() { "cannot be reached" } else { "broke off" };
    Fault::Away(format!("{of} {what}: {cause}"), None)
}

/// What an answer that is no success says.
pub(crate) async fn refused(mut answer: Response) -> Fault {
    let (status, url) = (answer.status(), shown(answer.url()));
    let wait = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MOST_OF_AN_ERROR {
            break;
        }
    }
    let said = said(&bytes);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let text = format!("{url} answers {}{said}", status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Fault::Credential(format!("{text}; the credential is missing or wrong"))
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => Fault::Missing(text),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Fault::Away(text, wait.map(Duration::from_secs))
        }
        _ if status.is_server_error() => Fault::Away(text, wait.map(Duration::from_secs)),
        _ => Fault::Refused(text),
    }
}

/// The sentence in an error's body: JSON of several makers, or text.
fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let found = serde_json::from_slice::<Value>(bytes).ok().and_then(|json| {
        let places = ["/message", "/detail", "/errors/0/message", "/error", "/meta/msg"];
        places.iter().find_map(|place| Some(json.pointer(place)?.as_str()?.to_owned()))
    });
    let plain = || {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        if line.starts_with('<') { String::new() } else { line.to_owned() }
    };
    let said = found.unwrap_or_else(plain);
    said.chars().filter(|symbol| !symbol.is_control()).take(MOST_SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_no_credential() {
        for wrong in ["ftp://host/", "host", "http://me:secret@host/", "http://me@host/"] {
            let refused = Client::new(wrong, None).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
        let client = Client::new("http://host/maven?token=x", None).unwrap();
        assert_eq!(client.base().as_str(), "http://host/maven/");
        assert_eq!(client.url("a/b").unwrap().as_str(), "http://host/maven/a/b");
        assert_eq!(shown(&Url::parse("https://a:b@host/p?sig=x#y").unwrap()), "https://host/p");
    }

    #[test]
    fn an_errors_sentence_is_found() {
        for (body, expected) in [
            (r#"{"error":"x","message":"It is so."}"#, "It is so."),
            (r#"{"errors":[{"code":"DENIED","message":"no"}]}"#, "no"),
            ("<html>", ""),
            ("\n plain \n more", "plain"),
            ("", ""),
        ] {
            assert_eq!(said(body.as_bytes()), expected, "{body}");
        }
    }
}
