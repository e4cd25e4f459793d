//! Metrics, alerts and the dashboard. Every metric has a row in the reference, and every alert and
//! panel queries existing metrics. Each alert fires when its condition is met.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use packhouse_tests::clients::{has, run};
use packhouse_tests::{Client, Server, checkout, skip};

fn page(path: &str) -> String {
    std::fs::read_to_string(checkout().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of the program's metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let ends = ["_bucket", "_sum", "_count"];
    let base = |word: &str| ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned();
    words.filter(|word| word.starts_with("packhouse_")).map(base).collect()
}

#[test]
fn every_served_metric_has_a_row_and_alerts_query_existing_metrics() {
    let server = Server::start();
    server.anonymous().get("/repositories/x");
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let there: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(names)
        .filter(|name| name.starts_with("packhouse_"))
        .collect();
    let listed = names(&page("docs/reference/metrics.md"));
    let missing: Vec<_> = there.iter().filter(|name| !listed.contains(*name)).collect();
    assert!(missing.is_empty(), "host/app/src/metrics/registry.rs has no row for {missing:?}");
    for file in ["docs/monitoring/alerts.yml", "docs/monitoring/dashboard.json"] {
        let queried = names(&page(file));
        let unknown: Vec<_> = queried.iter().filter(|name| !listed.contains(*name)).collect();
        assert!(unknown.is_empty() && queried.len() > 5, "{file} queries {unknown:?}, which do not exist");
    }
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|file| file.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Also checks metrics that the server of the previous test does not report, such as those for S3.
#[test]
fn every_metric_in_the_code_has_a_row() {
    let listed = names(&page("docs/reference/metrics.md"));
    let is_metric = |name: &String| ["_total", "_seconds", "_bytes"].iter().any(|end| name.ends_with(end));
    let sources = sources(&checkout().join("host"));
    assert!(sources.len() > 100, "the sources were not found");
    let used = sources.iter().flat_map(|file| names(&std::fs::read_to_string(file).unwrap()));
    let missing: BTreeSet<String> = used.filter(is_metric).filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "host/app/src/metrics/registry.rs has no row for {missing:?}");
}

#[test]
fn alerts_fire_on_their_conditions() {
    let folder = checkout().join("docs/monitoring");
    if !has("promtool") {
        return skip("the alerts", "no promtool (Debian's package prometheus) on the path");
    }
    let promtool = |words: &[&str]| run(Command::new("promtool").args(words).current_dir(&folder)).success();
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts.test.yml"]);
}

#[test]
fn the_dashboard_is_valid_for_grafana() {
    let dashboard: serde_json::Value = serde_json::from_str(&page("docs/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 8 && dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    for panel in panels {
        assert!(panel["title"].is_string() && panel["gridPos"].is_object(), "{panel}");
        assert!(
            panel["targets"].as_array().unwrap().iter().all(|target| target["expr"].is_string()),
            "{panel}"
        );
    }
}
