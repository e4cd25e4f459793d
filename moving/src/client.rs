//! HTTP client. A credential is sent only to its own server, the sizes of responses are bounded,
//! and failures become messages.

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

use crate::allowed_hosts::AllowedHosts;
use crate::error::{MoveError, again};
use crate::secret::{Credential, CredentialKind};
use crate::stream::ByteSource;

/// Maximum size of a document in bytes. The packument of a package with thousands of versions has
/// tens of MiB.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 256 << 20;
/// Maximum number of bytes that the client reads of an error response.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// Maximum number of characters that an error quotes of a server's message.
const MAX_MESSAGE_CHARS: usize = 300;
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// Longest time that a server may send nothing.
const READ_WITHIN: Duration = Duration::from_secs(120);

/// Client for one server, with its credential.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    inner: reqwest::Client,
    base: Url,
    allowed_hosts: AllowedHosts,
    credential: Option<Credential>,
}

/// A response that was read completely.
#[derive(Debug)]
pub(crate) struct HttpDocument {
    pub(crate) bytes: Bytes,
    pub(crate) headers: HeaderMap,
    /// The address after all redirects.
    pub(crate) url: Url,
}

impl HttpDocument {
    /// The body as text. Invalid UTF-8 is replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, MoveError> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            MoveError::Refused(format!("{} sent a response that is not JSON: {error}", redacted(&self.url)))
        })
    }

    /// The media type without parameters.
    pub(crate) fn media_type(&self) -> &str {
        let whole = self.headers.get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        whole.unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }
}

impl Client {
    /// Creates a client for the server at this address. Requests to other servers carry no
    /// credential.
    ///
    /// # Errors
    /// Fails if the address is not an http or https URL, or contains a credential.
    pub(crate) fn new(base: &str, credential: Option<Credential>) -> anyhow::Result<Client> {
        Client::leading_to(base, credential, &[])
    }

    /// Creates a client like [`new`](Client::new). The server's redirects and links may also lead
    /// to these hosts, even if their addresses are internal.
    ///
    /// # Errors
    /// The same as for [`new`](Client::new).
    pub(crate) fn leading_to(
        base: &str,
        credential: Option<Credential>,
        hosts: &[String],
    ) -> anyhow::Result<Client> {
        let mut base = Url::parse(base).with_context(|| format!("`{base}` is not a valid URL"))?;
        ensure!(matches!(base.scheme(), "http" | "https"), "`{base}` is not an http or https URL");
        ensure!(
            base.username().is_empty() && base.password().is_none(),
            "the address must not contain a credential, because every user of this machine can read it there: use a file or the environment"
        );
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let allowed_hosts = AllowedHosts::of(&base, hosts);
        let inner = reqwest::Client::builder()
            .redirect(allowed_hosts.redirects())
            .dns_resolver(Arc::new(allowed_hosts.clone()))
            .user_agent(concat!("packhouse/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .read_timeout(READ_WITHIN)
            .build()
            .context("failed to set up the HTTP client")?;
        Ok(Client { inner, base, allowed_hosts, credential })
    }

    /// A client for the same server with another credential.
    pub(crate) fn with_credential(&self, credential: Credential) -> Client {
        Client { credential: Some(credential), ..self.clone() }
    }

    /// The server's address, with a trailing slash.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// The credential that is sent to the server.
    pub(crate) fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// Resolves a path or a complete URL against the server's address.
    pub(crate) fn url(&self, path: &str) -> Result<Url, MoveError> {
        self.base
            .join(path)
            .map_err(|error| MoveError::Refused(format!("`{path}` is not a valid address: {error}")))
    }

    /// Checks that the server may lead to this address.
    pub(crate) fn check(&self, url: &Url) -> Result<(), MoveError> {
        self.allowed_hosts.check(url).map_err(MoveError::Refused)
    }

    /// A request, with the credential if it goes to the server itself.
    pub(crate) fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        let request = self.inner.request(method, url.clone());
        match self.credential.as_ref().filter(|_| url.origin() == self.base.origin()) {
            Some(Credential(CredentialKind::Login { name, password })) => {
                request.basic_auth(name, Some(password.reveal()))
            }
            Some(Credential(CredentialKind::Token(token))) => request.bearer_auth(token.reveal()),
            None => request,
        }
    }

    /// A request without the credential.
    pub(crate) fn bare(&self, method: Method, url: &Url) -> RequestBuilder {
        self.inner.request(method, url.clone())
    }

    /// Opens an address for reading as a stream.
    pub(crate) async fn open(&self, url: &Url) -> Result<ByteSource, MoveError> {
        self.check(url)?;
        opened(checked(self.request(Method::GET, url)).await?)
    }

    /// Reads a document, with retries.
    pub(crate) async fn document(&self, url: &Url, accept: &str) -> Result<HttpDocument, MoveError> {
        self.check(url)?;
        again(|| async { whole(checked(self.request(Method::GET, url).header(ACCEPT, accept)).await?).await })
            .await
    }

    /// Reads a JSON document.
    pub(crate) async fn json(&self, url: &Url) -> Result<Value, MoveError> {
        self.document(url, "application/json").await?.json()
    }

    /// Sends JSON without retries and reads the JSON response. Meant for requests that a person
    /// waits for.
    pub(crate) async fn send_once(
        &self,
        method: Method,
        url: &Url,
        body: &Value,
    ) -> Result<Value, MoveError> {
        let request =
            self.request(method, url).header("content-type", "application/json").body(body.to_string());
        whole(checked(request).await?).await?.json()
    }

    /// Sends JSON with retries and reads the JSON response. Returns null for an empty response.
    pub(crate) async fn send_json(
        &self,
        method: Method,
        url: &Url,
        body: &Value,
    ) -> Result<Value, MoveError> {
        let request = || {
            self.request(method.clone(), url)
                .header("content-type", "application/json")
                .body(body.to_string())
        };
        let answer = again(|| async { whole(checked(request()).await?).await }).await?;
        if answer.bytes.is_empty() { Ok(Value::Null) } else { answer.json() }
    }

    /// Sends a HEAD request and returns the response headers. `None` for a 404 or 410.
    pub(crate) async fn head(&self, url: &Url, accept: &str) -> Result<Option<HeaderMap>, MoveError> {
        self.check(url)?;
        let response = again(|| checked(self.request(Method::HEAD, url).header(ACCEPT, accept))).await;
        match response {
            Ok(answer) => Ok(Some(answer.headers().clone())),
            Err(MoveError::Missing(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// Sends a request. A response that is not a success is an error.
pub(crate) async fn checked(request: RequestBuilder) -> Result<Response, MoveError> {
    let answer = request.send().await.map_err(|error| unreachable(&error))?;
    if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) }
}

/// The body of a response as a stream.
pub(crate) fn opened(answer: Response) -> Result<ByteSource, MoveError> {
    let modified =
        answer.headers().get(LAST_MODIFIED).and_then(|value| value.to_str().ok()).and_then(http_date);
    let length = answer.content_length();
    let stream = answer.bytes_stream().map(|piece| piece.map_err(|error| unreachable(&error))).boxed();
    Ok(ByteSource { stream, length, modified })
}

/// Reads the whole body of a response.
pub(crate) async fn whole(mut answer: Response) -> Result<HttpDocument, MoveError> {
    let (headers, url) = (answer.headers().clone(), answer.url().clone());
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(&error))? {
        if bytes.len() + piece.len() > MAX_DOCUMENT_BYTES {
            return Err(MoveError::Refused(format!(
                "{} sent a document that is larger than 256 MiB",
                redacted(&url)
            )));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(HttpDocument { bytes: bytes.into(), headers, url })
}

fn http_date(text: &str) -> Option<Timestamp> {
    Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()
}

/// An address in printable form, without the parts that may be credentials: the query, the fragment
/// and the user.
pub(crate) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// The error for a request that got no response or an incomplete one.
pub(crate) fn unreachable(error: &reqwest::Error) -> MoveError {
    let mut causes = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    let of = error.url().map(redacted).unwrap_or_default();
    let cause = causes.pop().unwrap_or_else(|| "the connection broke".to_owned());
    if error.is_redirect() {
        return MoveError::Refused(format!("{of} was not followed: {cause}"));
    }
    let what = if error.is_connect() { "cannot be reached" } else { "broke off" };
    MoveError::Unavailable(format!("{of} {what}: {cause}"), None)
}

/// The error for a response that is not a success.
pub(crate) async fn refused(mut answer: Response) -> MoveError {
    let (status, url) = (answer.status(), redacted(answer.url()));
    let wait = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_ERROR_BYTES {
            break;
        }
    }
    let message = message(&bytes);
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    let text = format!("{url} answers {}{message}", status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            MoveError::Credential(format!("{text}; the credential is missing or wrong"))
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => MoveError::Missing(text),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            MoveError::Unavailable(text, wait.map(Duration::from_secs))
        }
        _ if status.is_server_error() => MoveError::Unavailable(text, wait.map(Duration::from_secs)),
        _ => MoveError::Refused(text),
    }
}

/// Finds the message in an error's body: JSON of several products, or text.
fn message(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let found = serde_json::from_slice::<Value>(bytes).ok().and_then(|json| {
        let places = ["/message", "/detail", "/errors/0/message", "/error", "/meta/msg"];
        places.iter().find_map(|place| Some(json.pointer(place)?.as_str()?.to_owned()))
    });
    let plain = || {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        if line.starts_with('<') { String::new() } else { line.to_owned() }
    };
    let message = found.unwrap_or_else(plain);
    message.chars().filter(|symbol| !symbol.is_control()).take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_credentials_are_refused() {
        for wrong in ["ftp://host/", "host", "http://me:secret@host/", "http://me@host/"] {
            let refused = Client::new(wrong, None).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
        let client = Client::new("http://host/maven?token=x", None).unwrap();
        assert_eq!(client.base().as_str(), "http://host/maven/");
        assert_eq!(client.url("a/b").unwrap().as_str(), "http://host/maven/a/b");
        assert_eq!(redacted(&Url::parse("https://a:b@host/p?sig=x#y").unwrap()), "https://host/p");
    }

    #[test]
    fn the_message_of_an_error_is_found() {
        for (body, expected) in [
            (r#"{"error":"x","message":"It is so."}"#, "It is so."),
            (r#"{"errors":[{"code":"DENIED","message":"no"}]}"#, "no"),
            ("<html>", ""),
            ("\n plain \n more", "plain"),
            ("", ""),
        ] {
            assert_eq!(message(body.as_bytes()), expected, "{body}");
        }
    }
}
