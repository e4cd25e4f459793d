//! `GET /repositories/`: which repositories a credential reaches, and what it may do in each. For other methods the address is not
//! served.

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
use packhouse_identity::access::{AccessAction, Rules};
use packhouse_identity::permissions::RepositoryAction;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;

/// Repositories of a page where the query does not say, and at most; as in the API.
const USUAL: u32 = 50;
const MOST: u32 = 200;
/// Rows read at a time.
const ROWS: u32 = 500;

/// A request for the list.
pub(crate) struct RepositoryList<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// Its query.
    pub query: &'a [(String, String)],
    /// Whose repositories.
    pub organization: OrganizationId,
}

/// One page, as the API has its pages.
#[derive(Serialize)]
struct Page {
    items: Vec<Item>,
    /// What `after` is to be for the page that follows; null on the last.
    next: Option<String>,
}

#[derive(Serialize)]
struct Item {
    id: String,
    name: String,
    format: String,
    kind: String,
    connection_address: String,
    actions: Vec<RepositoryAction>,
}

impl RepositoryList<'_> {
    /// The page that the query asks for. 401 for another method and for a credential that is none or not taken; 400 for a query
    /// that is wrong; 503 until all formats are compiled.
    pub(crate) async fn answer(&self, context: &mut RequestContext) -> Result<Response<Body>, HttpError> {
        if self.parts.method != Method::GET && self.parts.method != Method::HEAD {
            return Err(HttpError::of(&catalogue::UNAUTHORIZED));
        }
        // Which credentials are taken, and for what, all formats say together.
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
        // There is no format that does not look at user names; those of every format that stand for a token count.
        let current = self.app.runtime.current();
        let described = current.plugins().iter().map(|plugin| plugin.description());
        let token_usernames = described.flat_map(|description| description.token_usernames.clone()).collect();
        let rules = Rules { checks_username: true, token_usernames, ..access::rules(None) };
        let wanted = AccessAction::Read { for_publish: true };
        access::authorize_credential(&principal.presented, &rules, wanted, now)?;
        if let Some(token) = &principal.facts.token {
            self.app.store.token_used(token.id, now);
        }
        if let Some(key) = &principal.facts.key {
            self.app.store.access_key_used(key.id, now);
        }
        let page = self.page(&principal, &context.base_url, now).await?;
        self.respond(&page)
    }

    async fn page(&self, principal: &Principal, base_url: &str, now: i64) -> Result<Page, HttpError> {
        let (limit, mut after) = self.asked()?;
        let mut found: Vec<(RepositoryId, Item)> = Vec::new();
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
        Ok(Page { items: found.into_iter().map(|(_, item)| item).collect(), next })
    }

    fn asked(&self) -> Result<(usize, Option<RepositoryId>), HttpError> {
        let value =
            |name: &str| self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let wrong = |what: &str| HttpError::with(&catalogue::INVALID_REQUEST, what);
        let limit = value("limit").map_or(Some(USUAL), |text| text.parse().ok());
        let limit = limit.filter(|limit| (1..=MOST).contains(limit));
        let limit = limit.ok_or_else(|| wrong("`limit` is a whole number from 1 to 200."))?;
        let after = value("after").map(str::parse).transpose();
        let after = after.map_err(|_| wrong("`after` is what an earlier page gave as `next`."))?;
        Ok((limit as usize, after))
    }

    /// A repository and what the credential may do there, each judged as a request for it would be; none where that is nothing. A
    /// format that is switched off hides none of its repositories.
    fn item(
        &self,
        principal: &Principal,
        reached: &Reached,
        base_url: &str,
        now: i64,
    ) -> Option<(RepositoryId, Item)> {
        let RepositoryRow { id, name, format, kind, .. } = &reached.row;
        let plugin = self.app.runtime.plugin_of(*id, format);
        let rules = access::rules(plugin.as_ref().map(|plugin| plugin.description()));
        let mut elsewhere = principal.presented_elsewhere();
        let (presented, facts) = (elsewhere.to(reached), access::facts(&reached.row, true));
        let may = |wanted| access::authorize(presented, &rules, wanted, Some(facts), now).is_ok();
        let actions: Vec<RepositoryAction> = [
            (RepositoryAction::Read, AccessAction::Read { for_publish: false }),
            (RepositoryAction::Publish, AccessAction::Publish),
            (RepositoryAction::Delete, AccessAction::Delete),
        ]
        .into_iter()
        .filter_map(|(action, wanted)| may(wanted).then_some(action))
        .collect();
        let item = Item {
            id: id.to_string(),
            name: name.clone(),
            format: format.clone(),
            kind: kind.clone(),
            connection_address: format!("{base_url}/repositories/{name}/"),
            actions,
        };
        (!item.actions.is_empty()).then_some((*id, item))
    }

    fn respond(&self, page: &Page) -> Result<Response<Body>, HttpError> {
        let bytes = serde_json::to_vec(page).map_err(|error| {
            tracing::error!(%error, "a page of repositories could not be written");
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
