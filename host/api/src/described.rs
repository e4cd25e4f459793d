//! Products of a handler's description: its route, made at each start, and its part of the OpenAPI
//! document, made on the first request for it. The document's schemas come from hundreds of types,
//! which no start needs.

use axum::routing::MethodRouter;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{RefOr, Schema};

pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// Handler with the description of its endpoint.
pub(crate) struct Described {
    /// Method, path, right, parameters, body and responses.
    pub(crate) paths: Paths,
    pub(crate) handler: MethodRouter,
    /// Adds its schemas, and those that they refer to.
    pub(crate) schemas: fn(&mut Schemas),
}

/// Makes the [`Described`] of a handler that has a `#[utoipa::path]`.
macro_rules! routes {
    ($($handler:tt)+) => {{
        use utoipa_axum::PathItemExt as _;
        let methods = utoipa_axum::routes!(@path [methods()] of $($handler)+);
        let handler = methods
            .iter()
            .fold(axum::routing::MethodRouter::new(), |router, method| router.on(method.to_method_filter(), $($handler)+));
        let path = utoipa_axum::routes!(@path [path()] of $($handler)+);
        let operation = utoipa_axum::routes!(@path [operation()] of $($handler)+);
        let mut paths = utoipa::openapi::path::Paths::new();
        paths.add_path_operation(&path, methods, operation);
        $crate::described::Described {
            paths,
            handler,
            schemas: |all| utoipa_axum::routes!(@path [schemas(all)] of $($handler)+),
        }
    }};
}

pub(crate) use routes;
