//! Endpoint from its handler's description. `#[utoipa::path]` states the method, the path, the
//! right (`x-right`), the family for API tokens (`x-scope`) and the body, and nothing else repeats
//! them.

use anyhow::{Context as _, ensure};
use http::Method;
use packhouse_config::Limits;
use utoipa::openapi::path::{Operation, Paths};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::{PathItem, RefOr, Required};

pub(crate) use crate::operations::Right;
use crate::operations::confirmations::Action;
use crate::scope::{ApiScope, Family};

/// Extension of an operation with its right.
const RIGHT: &str = "x-right";
/// Extension of an operation with its family. The OpenAPI document has the scopes that open it
/// instead.
pub(crate) const SCOPE: &str = "x-scope";
/// Extension of an operation with the action that needs a fresh confirmation.
const CONFIRMATION: &str = "x-confirmation";

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// Path with `{parameters}`.
    pub(crate) path: String,
    /// Right that the caller needs.
    pub(crate) right: Right,
    /// Family, which decides the scopes of API tokens that open it.
    pub(crate) family: Family,
    /// Action that the caller must have confirmed recently, if any.
    pub(crate) confirmation: Option<Action>,
    /// True if a body is required, and must be declared as JSON.
    pub(crate) requires_body: bool,
    /// True if the body may be a component, as `application/wasm`.
    pub(crate) takes_component: bool,
    /// True if the body must be a form.
    pub(crate) takes_form: bool,
}

/// Media type of a component.
pub(crate) const COMPONENT: &str = "application/wasm";

/// Media type of a form.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// Endpoints other than GET that still work in read-only mode: signing in and out, confirmations,
/// and the one that ends it.
const WORK_READ_ONLY: [(Method, &str); 4] = [
    (Method::POST, "/v1/sessions"),
    (Method::DELETE, "/v1/sessions/current"),
    (Method::POST, "/v1/confirmations"),
    (Method::POST, "/v1/reload"),
];

/// Endpoints that still work in maintenance mode.
const WORK_IN_MAINTENANCE: [(Method, &str); 2] =
    [(Method::POST, "/v1/sessions"), (Method::POST, "/v1/reload")];

/// Endpoints of the OSV API. They change nothing, the operator may open them to anybody, and some
/// clients do not declare their body as JSON.
const OSV: [&str; 3] = ["/v1/query", "/v1/querybatch", "/v1/vulns/{id}"];
/// JSON tokens of the largest query of the OSV API: 1,000 packages with at most 20 tokens each.
const OSV_JSON_TOKENS: u64 = 20_000;
/// JSON tokens of a SCIM group with about 8,000 members: Okta sends a name and a value for each id
/// and each display name.
const SCIM_JSON_TOKENS: u64 = 50_000;

impl Endpoint {
    /// Returns whether this endpoint belongs to the OSV API.
    pub(crate) fn is_of_osv(&self) -> bool {
        OSV.contains(&self.path.as_str())
    }

    /// Returns whether this endpoint belongs to SCIM.
    pub(crate) fn is_of_scim(&self) -> bool {
        self.family == Family::Scim
    }

    /// Limits of its calls. Lock-file queries and groups of SCIM may have more JSON tokens than
    /// other bodies.
    pub(crate) fn limits(&self, of_server: Limits) -> Limits {
        let least = match () {
            () if self.is_of_osv() => OSV_JSON_TOKENS,
            () if self.is_of_scim() => SCIM_JSON_TOKENS,
            () => 0,
        };
        Limits { api_json_tokens: of_server.api_json_tokens.max(least), ..of_server }
    }

    /// Returns whether a call changes nothing.
    fn only_reads(&self) -> bool {
        self.method.is_safe() || self.is_of_osv()
    }

    /// Scopes of API tokens that open it. An endpoint for anyone needs no credential.
    pub(crate) fn scopes(&self) -> Vec<ApiScope> {
        match self.right {
            Right::Anyone => Vec::new(),
            Right::SignedIn | Right::Holds(_) | Right::OfObject => self.family.scopes(self.only_reads()),
        }
    }

    /// Returns whether it works in read-only mode.
    pub(crate) fn works_read_only(&self) -> bool {
        self.only_reads()
            || WORK_READ_ONLY.iter().any(|(method, path)| self.method == *method && self.path == *path)
    }

    /// Returns whether it works in maintenance mode, so that an operator can end it.
    pub(crate) fn works_in_maintenance(&self) -> bool {
        WORK_IN_MAINTENANCE.iter().any(|(method, path)| self.method == *method && self.path == *path)
    }

    /// Reads the endpoint from its description. Fails unless the description has exactly one path
    /// with one method, a right and a family.
    pub(crate) fn read(paths: &mut Paths) -> anyhow::Result<(Endpoint, &mut Operation)> {
        ensure!(paths.paths.len() == 1, "a description has several paths");
        let (path, item) = paths.paths.iter_mut().next().context("a description has no path")?;
        let (method, operation) =
            only(item).with_context(|| format!("{path} does not have exactly one method"))?;
        let extension =
            |name: &str| operation.extensions.as_ref().and_then(|extensions| extensions.get(name)).cloned();
        let right = extension(RIGHT).with_context(|| format!("{method} {path} does not name a right"))?;
        let family = extension(SCOPE).with_context(|| format!("{method} {path} does not name a family"))?;
        let confirmation = extension(CONFIRMATION).map(serde_json::from_value).transpose();
        let endpoint = Endpoint {
            confirmation: confirmation
                .with_context(|| format!("{method} {path} has an unknown confirmation"))?,
            right: serde_json::from_value(right)
                .with_context(|| format!("{method} {path} has an unknown right"))?,
            family: serde_json::from_value(family)
                .with_context(|| format!("{method} {path} has an unknown family"))?,
            requires_body: requires_body(operation),
            takes_component: takes(operation, COMPONENT),
            takes_form: takes(operation, FORM),
            method,
            path: path.clone(),
        };
        Ok((endpoint, operation))
    }
}

fn requires_body(operation: &Operation) -> bool {
    let required = |body: &RefOr<RequestBody>| match body {
        RefOr::T(RequestBody { required, .. }) => *required == Some(Required::True),
        RefOr::Ref(_) => true,
    };
    operation.request_body.as_ref().is_some_and(required)
}

fn takes(operation: &Operation, media_type: &str) -> bool {
    let taken = |body: &RefOr<RequestBody>| match body {
        RefOr::T(RequestBody { content, .. }) => content.contains_key(media_type),
        RefOr::Ref(_) => false,
    };
    operation.request_body.as_ref().is_some_and(taken)
}

/// Returns the operation of an item, if it has exactly one.
fn only(item: &mut PathItem) -> Option<(Method, &mut Operation)> {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::POST, post),
        (Method::PUT, put),
        (Method::PATCH, patch),
        (Method::DELETE, delete),
    ];
    let mut operations =
        all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)));
    operations.next().filter(|_| operations.next().is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(value: serde_json::Value) -> Paths {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn queries_of_the_osv_api_only_read_and_calls_for_anyone_need_no_scope() {
        let answers = json!({"200": {"description": "so"}});
        let scopes = |right: &str| {
            let operation = json!({"responses": answers, "x-right": right, "x-scope": "policies"});
            let mut described = paths(json!({"/v1/query": {"post": operation}}));
            Endpoint::read(&mut described).unwrap().0.scopes()
        };
        assert_eq!(scopes("signed-in"), [ApiScope::Read, ApiScope::Policies, ApiScope::All]);
        assert!(scopes("anyone").is_empty());
    }

    #[test]
    fn a_description_without_a_right_or_a_family_is_refused() {
        let answers = json!({"200": {"description": "so"}});
        let good = json!({"responses": answers, "x-right": "signed-in", "x-scope": "tokens"});
        let mut described = paths(json!({"/v1/a": {"put": good}}));
        let (endpoint, _) = Endpoint::read(&mut described).unwrap();
        assert_eq!((endpoint.method.as_str(), endpoint.path.as_str()), ("PUT", "/v1/a"));
        assert_eq!((endpoint.right, endpoint.requires_body), (Right::SignedIn, false));
        assert_eq!(endpoint.scopes(), [ApiScope::Tokens, ApiScope::All]);
        for wrong in [
            json!({"/v1/a": {"put": {"responses": answers, "x-scope": "tokens"}}}),
            json!({"/v1/a": {"put": {"responses": answers, "x-scope": "tokens", "x-right": "mighty"}}}),
            json!({"/v1/a": {"put": {"responses": answers, "x-right": "signed-in"}}}),
            json!({"/v1/a": {"put": {"responses": answers, "x-right": "signed-in", "x-scope": "mighty"}}}),
            json!({"/v1/a": {}}),
            json!({}),
        ] {
            assert!(Endpoint::read(&mut paths(wrong)).is_err());
        }
    }
}
