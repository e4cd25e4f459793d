//! What the transport says of a call's body, before anything else is judged: 408, 413, 415, then malformed JSON.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::Value;

use super::error::ApiError;
use super::json::Counter;
use crate::catalogue;
use crate::config::Limits;

/// The body as JSON; none where there is no body and none is wanted.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    wanted: bool,
    limits: &Limits,
) -> Result<Option<Value>, ApiError> {
    let json = declared_json(headers);
    let bytes = receive(headers, body, json, limits).await?;
    if bytes.is_empty() && !wanted {
        return Ok(None);
    }
    if !json {
        return Err(ApiError::from(&catalogue::UNSUPPORTED_MEDIA_TYPE));
    }
    let value = serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::with(&catalogue::MALFORMED_JSON, &error.to_string()))?;
    Ok(Some(value))
}

/// The bytes of a page's form, within the same limits of size and time as any other body.
pub(crate) async fn read_form(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    receive(headers, body, false, limits).await
}

fn declared_json(headers: &HeaderMap) -> bool {
    let mut fields = headers.get_all(CONTENT_TYPE).iter();
    match (fields.next().and_then(|field| field.to_str().ok()), fields.next()) {
        (Some(field), None) => {
            let essence = field.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case("application/json")
        }
        _ => false,
    }
}

async fn receive(
    headers: &HeaderMap,
    mut body: Body,
    json: bool,
    limits: &Limits,
) -> Result<Bytes, ApiError> {
    let most = limits.api_body_bytes;
    let too_large = || ApiError::with(&catalogue::REQUEST_BODY_TOO_LARGE, &format!("{most} bytes"));
    let too_many = || {
        ApiError::with(&catalogue::REQUEST_BODY_TOO_LARGE, &format!("{} JSON tokens", limits.api_json_tokens))
    };
    let declared = headers.get(CONTENT_LENGTH).and_then(|field| field.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut received = BytesMut::new();
    let mut counter = Counter::default();
    while let Some(frame) = next(&mut body, limits).await? {
        if (received.len() + frame.len()) as u64 > most {
            return Err(too_large());
        }
        if json && counter.feed(&frame) > limits.api_json_tokens {
            return Err(too_many());
        }
        received.extend_from_slice(&frame);
    }
    Ok(received.freeze())
}

/// The next bytes. A body that breaks off did not arrive: nobody reads the answer, but the log has its code.
async fn next(body: &mut Body, limits: &Limits) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = tokio::time::timeout(limits.body_idle, body.frame()).await;
        match frame {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(_trailers) => {}
            },
            Ok(Some(Err(_))) | Err(_) => return Err(ApiError::from(&catalogue::REQUEST_TIMEOUT)),
        }
    }
}
