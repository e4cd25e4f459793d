//! `GET /repositories/`: lists the repositories that a credential reaches, and its actions in each
//! of them. The server does not serve other methods at this path.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use packhouse_store::{OrganizationId, Reached, RepositoryId, RepositoryRow};
use serde::Serialize;

use crate::access_request as access;
use crate::credential::PresentedCredential;
use crate::error_response::HttpError;
use crate::identify::{self, IdentityQuery, Principal};
use crate::request_context::RequestContext;
use packhouse_app::App;
use packhouse_identity::access::{AccessAction, FormatRules};
use packhouse_identity::permissions::RepositoryAction;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;

/// Default and maximum page size, as in the API.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;
const ROWS: u32 = 500;

pub(crate) struct RepositoryList<'a> {
    pub app: &'a Arc<App>,
    pub parts: &'a Parts,
    pub query: &'a [(String, String)],
    /// The organization whose repositories are listed.
    pub organization: OrganizationId,
}

/// A page of the list, in the same form as in the API.
#[derive(Serialize)]
struct RepositoryPage {
    items: Vec<RepositoryItem>,
    /// Value of the parameter `after` for the next page; null on the last page.
    next: Option<String>,
}

#[derive(Serialize)]
struct RepositoryItem {
    id: String,
    name: String,
    format: String,
    kind: String,
    connection_address: String,
    actions: Vec<RepositoryAction>,
}

impl RepositoryList<'_> {
    /// Answers with the requested page. Fails with 401 for other methods and for a missing or
    /// invalid credential, and with 400 for an invalid query. Fails with 503 until all formats are
    /// compiled.
    pub(crate) async fn answer(&self, context: &mut RequestContext) -> Result<Response<Body>, HttpError> {
        if self.parts.method != Method::GET && self.parts.method != Method::HEAD {
            return Err(HttpError::of(&catalogue::UNAUTHORIZED));
        }
        // The accepted credentials are known only when all formats are loaded.
        if !self.app.runtime.is_whole() {
            return Err(HttpError::of(&catalogue::SERVER_STARTING));
        }
        let query = IdentityQuery {
            organization: self.organization,
            repository: "",
            credential: PresentedCredential::read(&self.parts.headers).of_any_format(),
            peer: context.peer,
            bearer_format: None,
            own_address: &context.own_address,
            request_id: &context.request_id,
        };
        let principal = identify::identify(self.app, query).await?;
        context.credential.clone_from(&principal.credential);
        context.caller.clone_from(&principal.caller);
        let now = self.app.store.now_ms();
        // The request belongs to no format. Therefore, user names are checked, and the user names
        // that any format defines for tokens are accepted.
        let current = self.app.runtime.current();
        let described = current.plugins().iter().map(|plugin| plugin.description());
        let token_usernames = described.flat_map(|description| description.token_usernames.clone()).collect();
        let rules = FormatRules { checks_username: true, token_usernames, ..access::rules(None) };
        let required = AccessAction::Read { for_publish: true };
        access::authorize_credential(&principal.presented, &rules, required, now)?;
        if let Some(token) = &principal.facts.token {
            self.app.store.token_used(token.id, now);
        }
        if let Some(key) = &principal.facts.key {
            self.app.store.access_key_used(key.id, now);
        }
        let page = self.page(&principal, &context.base_url, now).await?;
        self.respond(&page)
    }

    async fn page(
        &self,
        principal: &Principal,
        base_url: &str,
        now: i64,
    ) -> Result<RepositoryPage, HttpError> {
        let (limit, mut after) = self.page_bounds()?;
        let mut found: Vec<(RepositoryId, RepositoryItem)> = Vec::new();
        while found.len() <= limit {
            let rows = self.app.store.list_reached(self.organization, &principal.facts, after, ROWS).await?;
            after = rows.last().map(|reached| reached.row.id);
            found.extend(rows.iter().filter_map(|reached| self.item(principal, reached, base_url, now)));
            if rows.len() < ROWS as usize {
                break;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(id, _)| id.to_string());
        Ok(RepositoryPage { items: found.into_iter().map(|(_, item)| item).collect(), next })
    }

    fn page_bounds(&self) -> Result<(usize, Option<RepositoryId>), HttpError> {
        let value =
            |name: &str| self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let wrong = |what: &str| HttpError::with(&catalogue::INVALID_REQUEST, what);
        let limit = value("limit").map_or(Some(DEFAULT_LIMIT), |text| text.parse().ok());
        let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
        let limit = limit.ok_or_else(|| wrong("`limit` must be an integer from 1 to 200."))?;
        let after = value("after").map(str::parse).transpose();
        let after = after.map_err(|_| wrong("`after` must be the `next` of an earlier page."))?;
        Ok((limit as usize, after))
    }

    /// Returns a repository with the actions that the credential may take there. Judges each action
    /// like a request. Returns `None` if the credential may take no action. A disabled format does
    /// not hide its repositories.
    fn item(
        &self,
        principal: &Principal,
        reached: &Reached,
        base_url: &str,
        now: i64,
    ) -> Option<(RepositoryId, RepositoryItem)> {
        let RepositoryRow { id, name, format, kind, .. } = &reached.row;
        let plugin = self.app.runtime.plugin_of(*id, format);
        let rules = access::rules(plugin.as_ref().map(|plugin| plugin.description()));
        let mut elsewhere = principal.presented_elsewhere();
        let (presented, facts) = (elsewhere.to(reached), access::facts(&reached.row, true));
        let may = |required| access::authorize(presented, &rules, required, Some(facts), now).is_ok();
        let actions: Vec<RepositoryAction> = [
            (RepositoryAction::Read, AccessAction::Read { for_publish: false }),
            (RepositoryAction::Publish, AccessAction::Publish),
            (RepositoryAction::Delete, AccessAction::Delete),
        ]
        .into_iter()
        .filter_map(|(action, required)| may(required).then_some(action))
        .collect();
        let item = RepositoryItem {
            id: id.to_string(),
            name: name.clone(),
            format: format.clone(),
            kind: kind.clone(),
            connection_address: format!("{base_url}/repositories/{name}/"),
            actions,
        };
        (!item.actions.is_empty()).then_some((*id, item))
    }

    fn respond(&self, page: &RepositoryPage) -> Result<Response<Body>, HttpError> {
        let bytes = serde_json::to_vec(page).map_err(|error| {
            tracing::error!(%error, "could not write a page of repositories");
            HttpError::of(&catalogue::INTERNAL)
        })?;
        let length = HeaderValue::from(bytes.len());
        let head = self.parts.method == Method::HEAD;
        let body = if head { Body::empty() } else { Body::full(Bytes::from(bytes)) };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, length);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(VARY, HeaderValue::from_static("Authorization"));
        Ok(response)
    }
}
