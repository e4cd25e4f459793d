//! Requests of trusted publishing. One kind asks which audience an ID token must have; another
//! exchanges an ID token for a token of this server. The format's description defines their paths
//! and shapes.

use bytes::BytesMut;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use packhouse_app::App;
use packhouse_app::publishers::{
    GivenBack, IdTokenRefusal, IdTokenRequest, PublisherReach, TOKEN_LIFETIME_S, audience_of,
};
use packhouse_identity::Secret;
use packhouse_runtime::{Exchange, ExchangeResult, Plugin, fill};
use packhouse_store::OrganizationId;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::IncomingBody;
use serde_json::Value;

use crate::credential::PresentedCredential;
use crate::declared_length::too_large;
use crate::error_response::HttpError;
use crate::request_context::RequestContext;
use crate::uncached_json::uncached_json;

/// Maximum size of a body, in bytes. It fits an ID token with a few members around it.
const MAX_BODY_BYTES: usize = 24 * 1024;

pub(crate) struct IdTokenExchange<'a> {
    pub app: &'a App,
    /// Plugin of the client's format.
    pub plugin: &'a Plugin,
    pub path: &'a [String],
    /// Organization whose trusted publishers may match the ID token.
    pub organization: OrganizationId,
}

impl IdTokenExchange<'_> {
    /// Answers the request. If the server refuses the ID token, the description defines the
    /// response.
    pub(crate) async fn answer(
        &self,
        parts: &Parts,
        body: &mut IncomingBody,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, HttpError> {
        let head = parts.method == Method::HEAD;
        let method = if head { "GET" } else { parts.method.as_str() };
        let found =
            self.plugin.description().exchanges_at(self.path).find(|exchange| exchange.method() == method);
        let exchange = found.ok_or_else(|| HttpError::of(&catalogue::METHOD_NOT_ALLOWED))?;
        if exchange.gives == ExchangeResult::Audience {
            let audience = audience_of(&context.own_address).to_owned();
            return Ok(self.json_response(StatusCode::OK, &exchange.answer, head, &|name| {
                (name == "audience").then(|| audience.as_str().into())
            }));
        }
        if *self.app.live.read_only.get() {
            return Err(HttpError::of(&catalogue::READ_ONLY));
        }
        let token = presented_token(exchange, parts, body).await?;
        let answered = match exchange.gives {
            ExchangeResult::Revocation => self.revoke(exchange, token, context).await,
            _ => self.exchange(exchange, token, context).await,
        };
        match answered {
            Ok(response) => Ok(response),
            Err(IdTokenRefusal::Store(error)) => Err(error.into()),
            Err(refused) => self.refused(exchange, refused),
        }
    }

    async fn exchange(
        &self,
        exchange: &Exchange,
        id_token: Option<Secret>,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, IdTokenRefusal> {
        let id_token = id_token.ok_or(IdTokenRefusal::Malformed("the request does not contain one"))?;
        let description = self.plugin.description();
        let package = exchange.package(self.path);
        let request = IdTokenRequest {
            organization: self.organization,
            id_token: &id_token,
            audiences: &self.audiences(context),
            reach: PublisherReach::Format {
                format: &description.format,
                package: package.as_deref(),
                folding: description.name_folding,
            },
            address: context.peer,
            request_id: &context.request_id,
        };
        let minted = self.app.exchange_id_token(request).await?;
        context.credential = Some(format!("token:{}", minted.row.id).into());
        context.caller = Some(minted.row.name.as_str().into());
        Ok(self.answered(exchange, &|name| match name {
            "token" => Some(minted.secret.reveal().into()),
            "expires" => Some((minted.expires_at / 1000).into()),
            "lifetime" => Some(TOKEN_LIFETIME_S.into()),
            "audience" => Some(audience_of(&context.own_address).into()),
            _ => None,
        }))
    }

    fn audiences(&self, context: &RequestContext) -> Vec<String> {
        self.app.id_token_audiences(&context.own_address, Some(&self.plugin.description().format))
    }

    /// Revokes a token. The response is the same if the secret is not a token of a trusted
    /// publisher, so that the response reveals nothing about the secret.
    async fn revoke(
        &self,
        exchange: &Exchange,
        token: Option<Secret>,
        context: &mut RequestContext,
    ) -> Result<Response<Body>, IdTokenRefusal> {
        let token = token.ok_or(IdTokenRefusal::Malformed("the request does not contain a token"))?;
        let request = GivenBack {
            organization: self.organization,
            token: &token,
            audiences: &self.audiences(context),
            address: context.peer,
            request_id: &context.request_id,
        };
        self.app.revoke_minted(request).await?;
        Ok(self.answered(exchange, &|_| None))
    }

    /// Returns the response to a successful exchange.
    fn answered(&self, exchange: &Exchange, found: &dyn Fn(&str) -> Option<Value>) -> Response<Body> {
        let status = exchange.status.and_then(|status| StatusCode::from_u16(status).ok());
        self.json_response(status.unwrap_or(StatusCode::OK), &exchange.answer, false, found)
    }

    fn refused(&self, exchange: &Exchange, refused: IdTokenRefusal) -> Result<Response<Body>, HttpError> {
        let code = refused.code();
        tracing::info!(code, format = self.plugin.description().format, "id token exchange refused");
        let Some(shape) = &exchange.refusal else { return Err(refused.into()) };
        let status = StatusCode::from_u16(shape.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
        let message = catalogue::INVALID_ID_TOKEN.with(&refused.to_string());
        Ok(self.json_response(status, &shape.body, false, &|name| match name {
            "code" => Some(code.into()),
            "message" => Some(message.as_str().into()),
            _ => None,
        }))
    }

    fn json_response(
        &self,
        status: StatusCode,
        template: &Value,
        head: bool,
        found: &dyn Fn(&str) -> Option<Value>,
    ) -> Response<Body> {
        if status == StatusCode::NO_CONTENT {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status;
            return response;
        }
        uncached_json(status, &fill(template, found).unwrap_or_default(), head)
    }
}

/// Reads the ID token, or the token to revoke, if the request contains one. Fails with 413 if the
/// body is too long.
async fn presented_token(
    exchange: &Exchange,
    parts: &Parts,
    body: &mut IncomingBody,
) -> Result<Option<Secret>, HttpError> {
    let Some(member) = &exchange.id_token else {
        return Ok(match PresentedCredential::read(&parts.headers) {
            PresentedCredential::Bearer(secret) => Some(secret),
            _ => None,
        });
    };
    let mut bytes = BytesMut::new();
    while let Some(more) = body.next().await? {
        if bytes.len() + more.len() > MAX_BODY_BYTES {
            return Err(too_large(MAX_BODY_BYTES as u64));
        }
        bytes.extend_from_slice(&more);
    }
    let body: Option<Value> = serde_json::from_slice(&bytes).ok();
    let found = body.as_ref().and_then(|body| body.get(member)).and_then(Value::as_str);
    Ok(found.map(Secret::new))
}
