//! What the transport says of a call's body: 413 by its declared length and 415 by its type at once; the bytes themselves only for
//! somebody whose session is good, or a few of them where a call needs none. What is read at one time is bounded, for all and for
//! each network, and so is how slowly it may come.

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
use super::json::Counter;
use crate::endpoint::{COMPONENT, FORM};
use packhouse_app::body_budget::{NoShare, Share};
use packhouse_config::Limits;
use packhouse_runtime::MAX_COMPONENT_BYTES;
use packhouse_wire::catalogue;

/// Bytes of a body that are read of somebody who has not signed in.
const UNSIGNED_BYTES: u64 = 16 * 1024;
/// A body that nobody wants is read to its end up to this size, so that the connection can go on.
const DRAIN_BYTES: u64 = 64 * 1024;
/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// The bytes of a form, with what they take of the memory for bodies.
pub struct Received {
    /// As they came.
    pub bytes: Bytes,
    _share: Share,
}

/// A call's body, of which nothing has been read yet.
pub(crate) struct CallBody {
    body: Body,
    declared: Option<u64>,
    json: bool,
    component: bool,
    is_form: bool,
    is_untyped: bool,
    expects_continue: bool,
    ended: bool,
    failed: bool,
}

impl CallBody {
    /// Nothing is read yet.
    pub(crate) fn new(headers: &HeaderMap, body: Body) -> Self {
        let declared = headers.get(CONTENT_LENGTH).and_then(|field| field.to_str().ok()?.parse::<u64>().ok());
        let expects_continue =
            headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let json = is_declared(headers, "application/json");
        let component = is_declared(headers, COMPONENT);
        let is_form = is_declared(headers, FORM);
        let is_untyped = !headers.contains_key(CONTENT_TYPE);
        let (ended, failed) = (false, false);
        Self { body, declared, json, component, is_form, is_untyped, expects_continue, ended, failed }
    }

    /// Takes a body of which nothing is said for JSON.
    pub(crate) fn assume_json(&mut self) {
        self.json |= self.is_untyped;
    }

    /// Whether the body is declared as a component. One that is neither that nor JSON, which tells where a component is, is 415.
    pub(crate) fn is_component(&self) -> Result<bool, ApiError> {
        if self.component || self.json {
            Ok(self.component)
        } else {
            Err(ApiError::from(&catalogue::NOT_A_COMPONENT))
        }
    }

    /// What can be said of a component before anything is read: 413.
    pub(crate) fn check_component(&self) -> Result<(), ApiError> {
        let most = MAX_COMPONENT_BYTES as u64;
        if self.declared.is_some_and(|length| length > most) { Err(too_large(most)) } else { Ok(()) }
    }

    /// The bytes of a component. The caller may install one, and no other is received meanwhile, so it counts for no share.
    pub(crate) async fn component(&mut self, limits: &Limits) -> Result<Bytes, ApiError> {
        self.json = false;
        self.receive(MAX_COMPONENT_BYTES as u64, limits, None).await
    }

    /// What can be said before anything is read: 413, then 415 where a body is wanted or announced.
    pub(crate) fn check(&self, wanted: bool, signed: bool, limits: &Limits) -> Result<(), ApiError> {
        let most = most(signed, limits);
        if self.declared.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        let announced = self.declared.is_some_and(|length| length > 0);
        if !self.json && (wanted || announced) {
            return Err(ApiError::from(&catalogue::UNSUPPORTED_MEDIA_TYPE));
        }
        Ok(())
    }

    /// What can be said of a call's form before anything is read: 413, 415.
    pub(crate) fn check_form(&self, signed: bool, limits: &Limits) -> Result<(), ApiError> {
        let most = most(signed, limits);
        if self.declared.is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        if self.is_form { Ok(()) } else { Err(ApiError::from(&catalogue::NOT_A_FORM)) }
    }

    /// The pairs of a call's form, with the share of memory that they take.
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

    /// The body as JSON, with the share of memory that it takes; none where there is no body and none is wanted.
    pub(crate) async fn json(
        &mut self,
        wanted: bool,
        signed: bool,
        limits: &Limits,
        mut share: Share,
    ) -> Result<(Option<Value>, Share), ApiError> {
        let bytes = self.receive(most(signed, limits), limits, Some(&mut share)).await?;
        if bytes.is_empty() && !wanted {
            return Ok((None, share));
        }
        if !self.json {
            return Err(ApiError::from(&catalogue::UNSUPPORTED_MEDIA_TYPE));
        }
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::with(&catalogue::MALFORMED_JSON, &error.to_string()))?;
        Ok((Some(value), share))
    }

    /// The bytes of a page's form, which is short where a stranger sends it.
    pub(crate) async fn form(
        mut self,
        limits: &Limits,
        signed: bool,
        mut share: Share,
    ) -> Result<Received, ApiError> {
        self.json = false;
        let bytes = self.receive(most(signed, limits), limits, Some(&mut share)).await?;
        Ok(Received { bytes, _share: share })
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
        let mut counter = Counter::default();
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

    /// The next bytes. A body that breaks off did not arrive: nobody reads the answer, but the log has its code.
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

    /// Reads what is left of a small body that nobody wants, and keeps none of it. False when bytes are left: then the connection has to
    /// be closed behind the answer.
    pub(crate) async fn drain(mut self) -> bool {
        let small = self.declared.is_some_and(|length| length <= DRAIN_BYTES);
        if small && !self.failed && !self.expects_continue && !self.is_spent() {
            let deadline = Instant::now() + DRAIN_TIME;
            while let Ok(Some(_)) = self.next(deadline).await {}
        }
        self.is_spent()
    }

    /// A chunked body does not know its end until it was asked for it.
    fn is_spent(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }
}

/// Bytes that a body may have.
fn most(signed: bool, limits: &Limits) -> u64 {
    if signed { limits.api_body_bytes } else { limits.api_body_bytes.min(UNSIGNED_BYTES) }
}

fn too_large(most: u64) -> ApiError {
    ApiError::with(&catalogue::REQUEST_BODY_TOO_LARGE, &format!("{most} bytes"))
}

/// Until when the next byte has to come: within the time without a byte, and no slower on the whole than the least rate.
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
