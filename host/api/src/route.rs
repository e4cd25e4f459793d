//! One row of the route table: method, path, the right that it needs, and who answers.

use std::future::Future;
use std::pin::Pin;

use http::Method;

use super::Answer;
use super::call::Call;
use packhouse_identity::permissions::Permission;

/// What a call needs besides its shape.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Right {
    /// Nothing, not even a session.
    Anyone,
    /// A session.
    SignedIn,
    /// A session, and this permission in the organization.
    Holds(Permission),
    /// A session, and a right in what the call is about, which the handler judges once it has found it.
    OfObject,
}

/// Answers a call.
pub(crate) type Handler = Box<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// One row.
pub(crate) struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{parameters}`.
    pub path: &'static str,
    /// What it needs.
    pub right: Right,
    /// Whether a body is wanted, and so its declaration as JSON.
    pub body: Wants,
    /// Who answers.
    pub handler: Handler,
}

/// Whether a call has a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wants {
    /// It has.
    Json,
    /// It may have none.
    Nothing,
}

impl Route {
    /// A row.
    pub(crate) fn new<F, T>(
        method: Method,
        path: &'static str,
        right: Right,
        body: Wants,
        handler: F,
    ) -> Route
    where
        F: Fn(Call) -> T + Send + Sync + 'static,
        T: Future<Output = Answer> + Send + 'static,
    {
        Route { method, path, right, body, handler: Box::new(move |call| Box::pin(handler(call))) }
    }

    /// Whether a body is wanted.
    pub(crate) fn wants_body(&self) -> bool {
        self.body == Wants::Json
    }
}
