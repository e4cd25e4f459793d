//! Spans for a trace of requests, apart from those of the log: they are wanted only where the setting `tracing.otlp_endpoint` says where
//! traces go, and cost a request one comparison otherwise. No field of one ever holds a credential.

use tracing::{Level, Span};

/// The target of all of them.
pub const TARGET: &str = "packhouse::trace";

/// Whether a span of a part of a request is wanted: traces are on, and a request is under way in this task. What the server does by
/// itself is no trace.
pub fn wanted() -> bool {
    tracing::span_enabled!(target: TARGET, Level::INFO) && !Span::current().is_none()
}

/// A span of a part of the request that is under way, with fields as `tracing::info_span` takes them; none where none is wanted.
#[macro_export]
macro_rules! part_span {
    ($name:literal $($fields:tt)*) => {
        if $crate::trace::wanted() {
            ::tracing::info_span!(target: $crate::trace::TARGET, $name $($fields)*)
        } else {
            ::tracing::Span::none()
        }
    };
}
