//! The [`World`] in which `plugins test` runs tables: a server that it calls over HTTP. The tables
//! see the answers that clients get. The refusal codes come from the server's log, because a format
//! may present refusals in other words.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context;
use base64::Engine as _;
use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderName, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use packhouse_runtime::{AuthorizationForm, Description};
use packhouse_testkit::{Answer, Effects, Form, TestRequest, World};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::child_server::{ChildServer, LogLine, OWNER};

/// How long to wait for an answer: longer than a plugin call may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Boundary of multipart forms, which does not occur in the body of any table.
const BOUNDARY: &str = "packhouse-plugins-test-0b7dff6cf6e1";

/// A repository of the server.
pub(super) struct Wire<'a> {
    pub(super) server: &'a mut ChildServer,
    pub(super) description: &'a Description,
    pub(super) repository: &'a str,
    pub(super) token: &'a str,
    pub(super) host: &'a str,
    /// Log lines of requests, by request id.
    pub(super) log: HashMap<String, Vec<LogLine>>,
}

impl World for Wire<'_> {
    fn send(&mut self, request: &TestRequest) -> Answer {
        let exchange = async { timeout(PATIENCE, self.exchange(request)).await };
        let done = tokio::task::block_in_place(|| Handle::current().block_on(exchange));
        match done {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Answer::refusal(0, "", &format!("there was no answer: {error:#}")),
            Err(_) => Answer::refusal(0, "", "there was no answer in 30 s"),
        }
    }

    fn effects(&mut self) -> Effects {
        Effects::default()
    }
}

impl Wire<'_> {
    #[expect(clippy::disallowed_methods, reason = "a row is compared with the answer as a whole")]
    async fn exchange(&mut self, row: &TestRequest) -> anyhow::Result<Answer> {
        let stream = TcpStream::connect(self.server.packages).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let (head, body) = sender.send_request(self.request(row)?).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        connection.abort();
        let value = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head.headers.iter().map(|(name, text)| {
            let text = value(text);
            // The host puts `private` in front of the plugin's directives when a request has
            // credentials.
            let own = if name == CACHE_CONTROL { text.strip_prefix("private, ") } else { None };
            (name.to_string(), own.map_or(text.clone(), str::to_owned))
        });
        let answer = Answer {
            status: head.status.as_u16(),
            headers: headers.collect(),
            body: body.to_vec(),
            ..Answer::default()
        };
        let id = answer.header("x-request-id").unwrap_or_default().to_owned();
        self.listen_for(&id).await;
        let log = self.log.get(&id).into_iter().flatten();
        let refusals = log.filter(|line| line.target() == "packhouse::refusal");
        let problems = refusals.map(|line| (line.text("code").to_owned(), line.message().to_owned()));
        Ok(Answer { problems: problems.collect(), ..answer })
    }

    /// Reads the log up to the access line of this request, which is the last line about the
    /// request.
    async fn listen_for(&mut self, id: &str) {
        while let Some(line) = self.server.next_line().await {
            let is_last = line.target() == "packhouse::access" && line.text("request_id") == id;
            self.log.entry(line.text("request_id").to_owned()).or_default().push(line);
            if is_last {
                return;
            }
        }
    }

    fn request(&self, row: &TestRequest) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(row.method.as_str()).uri(self.path(row));
        request = request.header("host", self.host);
        let headers = row.sent_headers();
        let has = |name: &str| headers.iter().any(|(known, _)| known == name);
        if !has("authorization") {
            request = request.header("authorization", self.authorization());
        }
        if !row.parts.is_empty() && !has("content-type") {
            request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        }
        for (name, text) in &headers {
            request = request.header(HeaderName::try_from(name)?, text);
        }
        let body = if row.parts.is_empty() { row.body.clone() } else { form(&row.parts) };
        request.body(Full::new(body.into())).context("the row does not form a valid HTTP request")
    }

    fn path(&self, row: &TestRequest) -> String {
        let claims = &self.description.claims;
        let claim = claims.iter().find(|claim| Some(&claim.name) == row.claim.as_ref());
        let below = claim.map_or("/repositories/{repository}", |claim| claim.path.trim_end_matches('/'));
        format!("{}{}", below.replace("{repository}", self.repository), row.target)
    }

    /// Returns the credential in the first form that the format accepts.
    fn authorization(&self) -> String {
        let basic = || {
            let both = format!("{OWNER}:{}", self.token);
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(both))
        };
        match self.description.authorization.first() {
            Some(AuthorizationForm::Bare) => self.token.to_owned(),
            Some(AuthorizationForm::Bearer) => format!("Bearer {}", self.token),
            Some(AuthorizationForm::Basic) | None => basic(),
        }
    }
}

fn form(parts: &[Form]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        let filename =
            part.filename.as_ref().map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{}\"{filename}\r\n\r\n",
            part.name
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&part.value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}
