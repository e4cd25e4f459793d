//! Spans for request traces, separate from those of the log. They exist only if the setting
//! `tracing.otlp_endpoint` names a destination. Otherwise each span costs a request one comparison.
//! Their fields never contain a credential.

use tracing::{Level, Span};

/// Target of all trace spans.
pub const TARGET: &str = "packhouse::trace";

/// True if spans of request parts are recorded: traces are enabled, and this task handles a
/// request. Background work is not traced.
pub fn is_enabled() -> bool {
    tracing::span_enabled!(target: TARGET, Level::INFO) && !Span::current().is_none()
}

/// Creates a span for a part of the current request, with fields as in `tracing::info_span`. The
/// span is empty if tracing is off.
#[macro_export]
macro_rules! part_span {
    ($name:literal $($fields:tt)*) => {
        if $crate::trace::is_enabled() {
            ::tracing::info_span!(target: $crate::trace::TARGET, $name $($fields)*)
        } else {
            ::tracing::Span::none()
        }
    };
}
