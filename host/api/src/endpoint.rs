//! An endpoint as its handler describes it: `#[utoipa::path]` there names the method, the path, the right (`x-right`) and the
//! body, and nothing names them again.

use anyhow::{Context as _, ensure};
use http::Method;
use packhouse_config::Limits;
use utoipa::openapi::path::{Operation, Paths};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::{PathItem, RefOr, Required};

pub(crate) use crate::operations::Right;
use crate::operations::confirmations::Action;

/// The extension of an operation that names its right.
const RIGHT: &str = "x-right";
/// The extension of an operation that names the action which needs a fresh confirmation.
const CONFIRMATION: &str = "x-confirmation";

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The method.
    pub(crate) method: Method,
    /// The path, with `{parameters}`.
    pub(crate) path: String,
    /// The right that it needs.
    pub(crate) right: Right,
    /// The action that the caller has confirmed a moment ago, where one is needed.
    pub(crate) confirmation: Option<Action>,
    /// Whether a body is wanted, and so its declaration as JSON.
    pub(crate) wants_body: bool,
    /// Whether the body is a component, as `application/wasm`.
    pub(crate) takes_component: bool,
    /// Whether the body is a form.
    pub(crate) takes_form: bool,
}

/// The media type of a component.
pub(crate) const COMPONENT: &str = "application/wasm";

/// The media type of a form.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// What is called with another method than GET and goes on in a server that takes no changes: signing in and out, and what the
/// operator does about it.
const GOES_ON: [(Method, &str); 4] = [
    (Method::POST, "/v1/sessions"),
    (Method::DELETE, "/v1/sessions/current"),
    (Method::POST, "/v1/confirmations"),
    (Method::POST, "/v1/reload"),
];

/// What is served while the server is being worked on.
const OPERATORS: [(Method, &str); 2] = [(Method::POST, "/v1/sessions"), (Method::POST, "/v1/reload")];

/// What programs ask that know the interface of OSV. It changes nothing, the operator may open it to anybody, and some of them do not say that
/// a body is JSON.
const OSV: [&str; 3] = ["/v1/query", "/v1/querybatch", "/v1/vulns/{id}"];
/// JSON tokens of the largest question that OSV's interface allows: 1,000 packages, of at most 20 tokens each.
const OSV_JSON_TOKENS: u64 = 20_000;

impl Endpoint {
    /// Whether it is asked by programs that know the interface of OSV.
    pub(crate) fn is_of_osv(&self) -> bool {
        OSV.contains(&self.path.as_str())
    }

    /// The limits of its calls. Questions about a lock file may have more JSON tokens than other bodies.
    pub(crate) fn limits(&self, of_server: Limits) -> Limits {
        if !self.is_of_osv() {
            return of_server;
        }
        Limits { api_json_tokens: of_server.api_json_tokens.max(OSV_JSON_TOKENS), ..of_server }
    }

    /// Whether it is served while the server takes no changes.
    pub(crate) fn goes_on(&self) -> bool {
        self.method.is_safe()
            || self.is_of_osv()
            || GOES_ON.iter().any(|(method, path)| self.method == *method && self.path == *path)
    }

    /// Whether it is served while nothing else is, so that an operator can bring the server back.
    pub(crate) fn is_for_operators(&self) -> bool {
        OPERATORS.iter().any(|(method, path)| self.method == *method && self.path == *path)
    }

    /// The endpoint of this description. Fails unless it is of one method of one path, and names its right.
    pub(crate) fn read(paths: &mut Paths) -> anyhow::Result<(Endpoint, &mut Operation)> {
        ensure!(paths.paths.len() == 1, "a description is of several paths");
        let (path, item) = paths.paths.iter_mut().next().context("a description is of no path")?;
        let (method, operation) = only(item).with_context(|| format!("{path} is not of one method"))?;
        let right = operation.extensions.as_ref().and_then(|extensions| extensions.get(RIGHT));
        let right = right.with_context(|| format!("{method} {path} names no right"))?;
        let confirmation = operation.extensions.as_ref().and_then(|extensions| extensions.get(CONFIRMATION));
        let confirmation = confirmation.cloned().map(serde_json::from_value).transpose();
        let endpoint = Endpoint {
            confirmation: confirmation
                .with_context(|| format!("{method} {path} has an unknown confirmation"))?,
            right: serde_json::from_value(right.clone())
                .with_context(|| format!("{method} {path} has an unknown right"))?,
            wants_body: wants_body(operation),
            takes_component: takes(operation, COMPONENT),
            takes_form: takes(operation, FORM),
            method,
            path: path.clone(),
        };
        Ok((endpoint, operation))
    }
}

fn wants_body(operation: &Operation) -> bool {
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

/// The operation of an item that has one.
fn only(item: &mut PathItem) -> Option<(Method, &mut Operation)> {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::POST, post),
        (Method::PUT, put),
        (Method::PATCH, patch),
        (Method::DELETE, delete),
    ];
    let mut there = all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)));
    there.next().filter(|_| there.next().is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(value: serde_json::Value) -> Paths {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_description_without_a_right_is_none() {
        let answers = json!({"200": {"description": "so"}});
        let mut described = paths(json!({"/v1/a": {"put": {"responses": answers, "x-right": "signed-in"}}}));
        let (endpoint, _) = Endpoint::read(&mut described).unwrap();
        assert_eq!((endpoint.method.as_str(), endpoint.path.as_str()), ("PUT", "/v1/a"));
        assert_eq!((endpoint.right, endpoint.wants_body), (Right::SignedIn, false));
        for wrong in [
            json!({"/v1/a": {"put": {"responses": answers}}}),
            json!({"/v1/a": {"put": {"responses": answers, "x-right": "mighty"}}}),
            json!({"/v1/a": {}}),
            json!({}),
        ] {
            assert!(Endpoint::read(&mut paths(wrong)).is_err());
        }
    }
}
