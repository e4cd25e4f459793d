//! Reception of a call's body. A declared length that is too large (413) and a wrong media type
//! (415) are refused before the body is read. The bytes are read only for a valid session, or up to
//! a small limit if the call needs none. The memory for bodies is limited in total and for each
//! network, and so is the time that a slow body may take.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::Instant;

use super::error::ApiError;
use super::json::TokenCounter;
use crate::endpoint::{COMPONENT, FORM};
use crate::scim::SCIM_JSON;
use packhouse_app::body_budget::{NoShare, Share};
use packhouse_config::Limits;
use packhouse_runtime::MAX_COMPONENT_BYTES;
use packhouse_wire::catalogue;

/// Maximum size of a body from a client that has not signed in.
const UNSIGNED_BYTES: u64 = 16 * 1024;
/// An unused body is read to its end up to this size, so that the connection can be reused.
const DRAIN_BYTES: u64 = 64 * 1024;
/// Time limit for reading an unused body.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Bytes of a form, with their share of the memory for bodies.
pub struct FormBody {
    pub bytes: Bytes,
    _share: Share,
}

pub(crate) struct CallBody {
    body: Body,
    declared: Option<u64>,
    json: bool,
    component: bool,
    is_form: bool,
    is_untyped: bool,
    is_scim: bool,
    expects_continue: bool,
    ended: bool,
    failed: bool,
}

impl CallBody {
    /// Reads only the header fields.
    pub(crate) fn new(headers: &HeaderMap, body: Body) -> Self {
        let declared = headers.get(CONTENT_LENGTH).and_then(|field| field.to_str().ok()?.parse::<u64>().ok());
        let expects_continue =
            headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let json = is_declared(headers, "application/json");
        let component = is_declared(headers, COMPONENT);
        let is_form = is_declared(headers, FORM);
        let is_untyped = !headers.contains_key(CONTENT_TYPE);
        let is_scim = is_declared(headers, SCIM_JSON);
        let (ended, failed) = (false, false);
        Self {
            body,
            declared,
            json,
            component,
            is_form,
            is_untyped,
            is_scim,
            expects_continue,
            ended,
            failed,
        }
    }

    /// Treats a body without a declared type as JSON.
    pub(crate) fn assume_json(&mut self) {
        self.json |= self.is_untyped;
    }

    /// Treats a body of SCIM's media type as JSON.
    pub(crate) fn accept_scim(&mut self) {
        self.json |= self.is_scim;
    }

    /// Returns whether the body is declared as a component. 415 if it is neither that nor JSON,
    /// which names the location of a component.
    pub(crate) fn is_component(&self) -> Result<bool, ApiError> {
        if self.component || self.json {
            Ok(self.component)
        } else {
            Err(ApiError::from(&catalogue::NOT_A_COMPONENT))
        }
    }

    /// Checks the declared length of a component; otherwise 413.
    pub(crate) fn check_component(&self) -> Result<(), ApiError> {
        let most = MAX_COMPONENT_BYTES as u64;
        if self.declared.is_some_and(|length| length > most) { Err(too_large(most)) } else { Ok(()) }
    }

    /// Receives the bytes of a component. They do not count against the memory for bodies: the
    /// caller may install components, and only one is received at a time.
    pub(crate) async fn component(&mut self, limits: &Limits) -> Result<Bytes, ApiError> {
        self.json = false;
        self.receive(MAX_COMPONENT_BYTES as u64, limits, None).await
    }

    /// Checks the header fields: 413 for the declared length, then 415 if a body is required or
    /// announced and is not JSON.
    pub(crate) fn check(&self, required: bool, signed: bool, limits: &Limits) -> Result<(), ApiError> {
        let most = most(signed, limits);
        if self.declared.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        let announced = self.declared.is_some_and(|length| length > 0);
        if !self.json && (required || announced) {
            return Err(ApiError::from(&catalogue::UNSUPPORTED_MEDIA_TYPE));
        }
        Ok(())
    }

    /// Checks the header fields of a form: 413 for the declared length, then 415 for the type.
    pub(crate) fn check_form(&self, signed: bool, limits: &Limits) -> Result<(), ApiError> {
        let most = most(signed, limits);
        if self.declared.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        if self.is_form { Ok(()) } else { Err(ApiError::from(&catalogue::NOT_A_FORM)) }
    }

    /// Receives the pairs of a form, with their share of the memory for bodies.
    pub(crate) async fn pairs(
        &mut self,
        signed: bool,
        limits: &Limits,
        mut share: Share,
    ) -> Result<(Vec<(String, String)>, Share), ApiError> {
        let bytes = self.receive(most(signed, limits), limits, Some(&mut share)).await?;
        let pairs = url::form_urlencoded::parse(&bytes);
        Ok((pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(), share))
    }

    /// Receives the body as JSON, with its share of the memory for bodies. `None` if the body is
    /// empty and optional.
    pub(crate) async fn json(
        &mut self,
        required: bool,
        signed: bool,
        limits: &Limits,
        mut share: Share,
    ) -> Result<(Option<Value>, Share), ApiError> {
        let bytes = self.receive(most(signed, limits), limits, Some(&mut share)).await?;
        if bytes.is_empty() && !required {
            return Ok((None, share));
        }
        if !self.json {
            return Err(ApiError::from(&catalogue::UNSUPPORTED_MEDIA_TYPE));
        }
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::with(&catalogue::MALFORMED_JSON, &error.to_string()))?;
        Ok((Some(value), share))
    }

    /// Receives the bytes of a page's form. The limit is lower for a client that has not signed in.
    pub(crate) async fn form(
        mut self,
        limits: &Limits,
        signed: bool,
        mut share: Share,
    ) -> Result<FormBody, ApiError> {
        self.json = false;
        let bytes = self.receive(most(signed, limits), limits, Some(&mut share)).await?;
        Ok(FormBody { bytes, _share: share })
    }

    async fn receive(
        &mut self,
        most: u64,
        limits: &Limits,
        share: Option<&mut Share>,
    ) -> Result<Bytes, ApiError> {
        let received = self.receive_within(most, limits, share).await;
        self.failed = received.is_err();
        received
    }

    async fn receive_within(
        &mut self,
        most: u64,
        limits: &Limits,
        mut share: Option<&mut Share>,
    ) -> Result<Bytes, ApiError> {
        if self.declared.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        let started = Instant::now();
        let mut received = BytesMut::new();
        let mut counter = TokenCounter::default();
        loop {
            let deadline = deadline(started, received.len(), limits);
            let Some(frame) = self.next(deadline).await? else { break };
            if (received.len() + frame.len()) as u64 > most {
                return Err(too_large(most));
            }
            if self.json && counter.feed(&frame) > limits.api_json_tokens {
                let tokens = format!("{} JSON tokens", limits.api_json_tokens);
                return Err(ApiError::with(&catalogue::REQUEST_BODY_TOO_LARGE, &tokens));
            }
            if let Some(share) = &mut share {
                share.grow(frame.len() as u64).map_err(|refused| match refused {
                    NoShare::Server => ApiError::from(&catalogue::SERVER_BUSY),
                    NoShare::Network => ApiError::too_many(1),
                })?;
            }
            received.extend_from_slice(&frame);
        }
        Ok(received.freeze())
    }

    /// Receives the next bytes. A body that breaks off is a `request_timeout`: nobody reads the
    /// response, but the log has the code.
    async fn next(&mut self, deadline: Instant) -> Result<Option<Bytes>, ApiError> {
        loop {
            match tokio::time::timeout_at(deadline, self.body.frame()).await {
                Ok(None) => {
                    self.ended = true;
                    return Ok(None);
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_trailers) => {}
                },
                Ok(Some(Err(_))) | Err(_) => return Err(ApiError::from(&catalogue::REQUEST_TIMEOUT)),
            }
        }
    }

    /// Reads and discards the rest of a small body. Returns false if bytes are left; the connection
    /// must then be closed after the response.
    pub(crate) async fn drain(mut self) -> bool {
        let small = self.declared.is_some_and(|length| length <= DRAIN_BYTES);
        if small && !self.failed && !self.expects_continue && !self.is_spent() {
            let deadline = Instant::now() + DRAIN_TIME;
            while let Ok(Some(_)) = self.next(deadline).await {}
        }
        self.is_spent()
    }

    /// Returns whether all bytes were read. A chunked body learns of its end only from a further
    /// read.
    fn is_spent(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}

/// Maximum size of a body in bytes.
fn most(signed: bool, limits: &Limits) -> u64 {
    if signed { limits.api_body_bytes } else { limits.api_body_bytes.min(UNSIGNED_BYTES) }
}

fn too_large(most: u64) -> ApiError {
    ApiError::with(&catalogue::REQUEST_BODY_TOO_LARGE, &format!("{most} bytes"))
}

/// Returns the deadline for the next byte. Both the idle time and the minimum average rate limit
/// it.
fn deadline(started: Instant, received: usize, limits: &Limits) -> Instant {
    let next = Instant::now() + limits.body_idle;
    match (received as u64).checked_div(limits.api_body_rate) {
        Some(seconds) => next.min(started + limits.body_idle + Duration::from_secs(seconds)),
        None => next,
    }
}

fn is_declared(headers: &HeaderMap, media_type: &str) -> bool {
    let mut fields = headers.get_all(CONTENT_TYPE).iter();
    match (fields.next().and_then(|field| field.to_str().ok()), fields.next()) {
        (Some(field), None) => {
            let essence = field.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case(media_type)
        }
        _ => false,
    }
}
