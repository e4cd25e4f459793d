//! Traces of requests, sent to an OpenTelemetry collector in batches from the exporter's own
//! thread. Spans that the collector does not accept in time are dropped, and no request waits for
//! the collector.

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

/// Name of the span of a plugin call. The log contains it too.
const PLUGIN_CALL: &str = "plugin.call";

/// Builds the exporter to the collector. [`finish`](super::finish) sends the spans that are still
/// queued.
pub(super) fn provider(settings: &Tracing) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(settings.endpoint.as_str())
        .build()
        .context("tracing.otlp_endpoint: failed to create the trace exporter")?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sampling_ratio)));
    let resource = Resource::builder().with_service_name(settings.service_name.clone()).build();
    read_parents_by(adopt);
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource)
        .build())
}

/// Builds a layer that records two kinds of spans, those with the target of the traces and those of
/// plugin calls. It records no log events.
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
    let filter = filter_fn(|metadata| {
        metadata.is_span() && (metadata.target() == TARGET || metadata.name() == PLUGIN_CALL)
    });
    layer.with_filter(filter)
}

/// Makes a span a child of the one in `traceparent`. A malformed header is ignored.
fn adopt(span: &Span, headers: &HeaderMap) {
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    // `set_parent` fails only for a span that is already being recorded; this one has just been
    // created.
    let _ = span.set_parent(context);
}

struct HeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
