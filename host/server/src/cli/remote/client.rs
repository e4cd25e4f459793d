//! Client of a server's management API, with an API token.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use packhouse_config::Secret;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, RequestBuilder};
use serde_json::Value;
use url::Url;

use super::address;
use super::refusal::ApiRefusal;

/// Time limit for a connection to the server.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a call. Some calls compile a plugin, or evaluate a policy for every version.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// Items on a page of a list, the API's maximum.
const PAGE: &str = "200";

/// Options of a connection to a management API.
pub(super) struct ConnectionOptions {
    /// Address of the API, from [`address::parse`].
    pub(super) url: Url,
    pub(super) token: Secret,
    /// PEM file of certificate authorities that are trusted beside the system's.
    pub(super) ca: Option<PathBuf>,
    /// Allows plain HTTP to another machine.
    pub(super) insecure: bool,
}

/// Client of a management API. It follows no redirects, so the API token reaches only the server
/// that the user named.
#[derive(Debug)]
pub(crate) struct ApiClient {
    http: Client,
    base: Url,
    token: Secret,
}

impl ApiClient {
    pub(super) fn new(options: ConnectionOptions) -> anyhow::Result<ApiClient> {
        let ConnectionOptions { url, token, ca, insecure } = options;
        address::check_encryption(&url, insecure)?;
        let mut builder = Client::builder()
            .user_agent(concat!("packhouse/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN);
        if address::is_loopback(&url) {
            builder = builder.no_proxy();
        }
        if url.scheme() == "http" {
            // A machine without certificates of the system can still connect.
            builder = builder.tls_certs_only([]);
        } else if let Some(file) = ca {
            let failed = || format!("the certificates in {} cannot be used", file.display());
            let pem = std::fs::read_to_string(&file).with_context(failed)?;
            let certificates = Certificate::from_pem_bundle(pem.as_bytes()).with_context(failed)?;
            builder = builder.tls_certs_merge(certificates);
        }
        let http = builder.build().context("failed to create the HTTP client")?;
        Ok(ApiClient { http, base: url, token })
    }

    /// Returns the JSON of `GET /v1/SEGMENTS`.
    pub(crate) async fn get(&self, segments: &[&str]) -> anyhow::Result<Value> {
        self.get_with(segments, &[]).await
    }

    /// Returns the JSON of `GET /v1/SEGMENTS?QUERY`.
    pub(crate) async fn get_with(&self, segments: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Value> {
        json(&self.call(self.http.get(self.url(segments, query))).await?)
    }

    /// Returns the body of `GET /v1/SEGMENTS`, unchanged.
    pub(crate) async fn get_text(&self, segments: &[&str]) -> anyhow::Result<String> {
        self.call(self.http.get(self.url(segments, &[]))).await
    }

    /// Returns all items of a list, page by page.
    pub(crate) async fn list(&self, segments: &[&str]) -> anyhow::Result<Vec<Value>> {
        self.list_with(segments, &[]).await
    }

    /// Returns all items of a list with these query parameters, page by page.
    pub(crate) async fn list_with(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> anyhow::Result<Vec<Value>> {
        let (mut items, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut query = query.to_vec();
            query.push(("limit", PAGE));
            query.extend(after.as_deref().map(|after| ("after", after)));
            let mut page = self.get_with(segments, &query).await?;
            if let Some(Value::Array(found)) = page.get_mut("items") {
                items.append(found);
            }
            match page.get("next").and_then(Value::as_str) {
                Some(next) if after.as_deref() != Some(next) => after = Some(next.to_owned()),
                _ => return Ok(items),
            }
        }
    }

    /// Sends JSON and returns the JSON of the response; null without one.
    pub(crate) async fn send(
        &self,
        method: Method,
        segments: &[&str],
        body: &Value,
    ) -> anyhow::Result<Value> {
        let request = self.http.request(method, self.url(segments, &[]));
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        json(&self.call(request).await?)
    }

    /// Returns the JSON of a POST with a JSON body.
    pub(crate) async fn post(&self, segments: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, segments, body).await
    }

    /// Returns the JSON of a POST without a body.
    pub(crate) async fn post_empty(&self, segments: &[&str]) -> anyhow::Result<Value> {
        json(&self.call(self.http.post(self.url(segments, &[]))).await?)
    }

    /// Returns the JSON of a PATCH with a JSON body.
    pub(crate) async fn patch(&self, segments: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.send(Method::PATCH, segments, body).await
    }

    /// Returns the JSON of a PUT with a JSON body.
    pub(crate) async fn put(&self, segments: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.send(Method::PUT, segments, body).await
    }

    /// Sends a PUT without a body.
    pub(crate) async fn put_empty(&self, segments: &[&str]) -> anyhow::Result<()> {
        self.call(self.http.put(self.url(segments, &[]))).await.map(drop)
    }

    /// Sends a DELETE without a body.
    pub(crate) async fn delete(&self, segments: &[&str]) -> anyhow::Result<()> {
        self.call(self.http.delete(self.url(segments, &[]))).await.map(drop)
    }

    /// Uploads a component, with a signature in base64 if there is one.
    pub(crate) async fn upload(
        &self,
        segments: &[&str],
        component: Bytes,
        signature: Option<&str>,
    ) -> anyhow::Result<Value> {
        let mut request = self.http.post(self.url(segments, &[])).header(CONTENT_TYPE, "application/wasm");
        if let Some(signature) = signature {
            request = request.header("x-plugin-signature", signature.trim());
        }
        json(&self.call(request.body(component)).await?)
    }

    /// Sends a request with the API token and returns the body of a successful response. The error
    /// of any other response is an [`ApiRefusal`].
    async fn call(&self, request: RequestBuilder) -> anyhow::Result<String> {
        let unreachable = |error: reqwest::Error| {
            anyhow!(error.without_url()).context(format!("the server {} cannot be reached", self.address()))
        };
        let answer = request.bearer_auth(self.token.reveal()).send().await.map_err(unreachable)?;
        let status = answer.status();
        let body = answer.text().await.map_err(unreachable)?;
        if status.is_success() {
            return Ok(body);
        }
        if status.is_redirection() {
            bail!(
                "{} redirects to another address, to which the API token is not sent: name that address with --server",
                self.address()
            );
        }
        Err(ApiRefusal::read(status, &body).into())
    }

    /// Returns the address of the API, without a slash at its end.
    pub(crate) fn address(&self) -> String {
        address::key(&self.base)
    }

    fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("v1").extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

fn json(body: &str) -> anyhow::Result<Value> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(body).context("the server did not answer with JSON, as the management API does")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded_below_the_path_of_the_address() {
        let options = |text: &str| ConnectionOptions {
            url: address::parse(text).unwrap(),
            token: Secret::new("pka_x"),
            ca: None,
            insecure: false,
        };
        let url = |text: &str| {
            let client = ApiClient::new(options(text)).unwrap();
            client.url(&["members", "a/b c"], &[("after", "x&y")]).to_string()
        };
        assert_eq!(url("http://127.0.0.1:1"), "http://127.0.0.1:1/v1/members/a%2Fb%20c?after=x%26y");
        assert_eq!(
            url("http://localhost/portal/"),
            "http://localhost/portal/v1/members/a%2Fb%20c?after=x%26y"
        );
        assert!(ApiClient::new(options("http://a.example")).is_err());
    }
}
