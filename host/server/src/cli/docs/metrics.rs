//! The page of all metrics.

use packhouse_app::metrics::{METRICS, Metric, PROCESS_METRICS};

use super::markdown::{cell, code, table};

const INTRO: &str = "\
# Metrics

This page lists every metric of `/metrics`, which is in Prometheus' text format. [Monitoring](../guides/monitoring.md)
describes which ones to watch.

A histogram has the suffixes `_bucket`, `_sum` and `_count`. Counters of faults exist from the start with the value 0, so
that `increase()` sees the first fault. The labels of a metric are in the second column, with their values.

";

/// Makes the page of all metrics.
pub(super) fn page() -> String {
    let own = rows(METRICS);
    let process = rows(&PROCESS_METRICS);
    format!("{INTRO}{own}## Metrics of the process\n\nThey exist on Linux only.\n\n{process}")
}

fn rows(metrics: &[Metric]) -> String {
    let row = |metric: &Metric| {
        let label = |(name, values): &(&str, &str)| match *values {
            "" => code(name),
            values => format!("{}: {}", code(name), cell(values)),
        };
        let labels = metric.labels.iter().map(label).collect::<Vec<_>>().join("<br>");
        [code(metric.name), labels, metric.kind.name().to_owned(), cell(metric.help)]
    };
    table(["metric", "labels", "kind", "meaning"], &metrics.iter().map(row).collect::<Vec<_>>())
}
