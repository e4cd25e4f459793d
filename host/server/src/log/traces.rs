//! Traces of requests, handed to a collector of OpenTelemetry in batches, on a thread of the exporter's own: what the collector does
//! not take in time is dropped, and no request waits for it.

use anyhow::Context as _;
use http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use packhouse_config::Tracing;
use packhouse_store::trace::TARGET;
use packhouse_wire::trace::read_parents_by;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// The span of a plugin's call, which the log has as well.
const PLUGIN_CALL: &str = "plugin.call";

/// What hands traces to the collector. Spans that still wait are sent by [`finish`](super::finish).
pub(super) fn provider(settings: &Tracing) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(settings.endpoint.as_str())
        .build()
        .context("tracing.otlp_endpoint: failed to make the exporter of traces")?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sampling_ratio)));
    let resource = Resource::builder().with_service_name(settings.service_name.clone()).build();
    read_parents_by(adopt);
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource)
        .build())
}

/// Takes the spans of traces, and of plugins' calls, and nothing that is written to the log.
pub(super) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("packhouse"))
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    let wanted = filter_fn(|metadata| {
        metadata.is_span() && (metadata.target() == TARGET || metadata.name() == PLUGIN_CALL)
    });
    layer.with_filter(wanted)
}

/// Makes a span a child of the one that `traceparent` names. One that is malformed names none.
fn adopt(span: &Span, headers: &HeaderMap) {
    let context = TraceContextPropagator::new().extract(&Headers(headers));
    // A span that has begun to be recorded keeps the parent that it has: this one has just been made.
    let _ = span.set_parent(context);
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
