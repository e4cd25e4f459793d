//! What a handler's description makes: its route, at each start, and its part of the OpenAPI document, once somebody asks for that. The
//! shapes that the document names are made of hundreds of types, which no start needs.

use axum::routing::MethodRouter;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{RefOr, Schema};

/// Shapes by their names.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A handler as it describes itself.
pub(crate) struct Described {
    /// Its method, path, right, parameters, body and answers.
    pub(crate) paths: Paths,
    /// What it serves.
    pub(crate) handler: MethodRouter,
    /// Adds the shapes that it names, and those that these name.
    pub(crate) schemas: fn(&mut Schemas),
}

/// A [`Described`] of a handler, which has a `#[utoipa::path]`.
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
