//! The signals that OPERATING.md describes: every metric has a row, every alert and every panel asks for metrics that there are, and the
//! alerts are raised by what they are for.

use std::collections::BTreeSet;
use std::process::Command;

use packhouse_tests::clients::{has, run};
use packhouse_tests::{Client, Server, checkout, skip};

fn page(path: &str) -> String {
    std::fs::read_to_string(checkout().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Names of this program's metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let ends = ["_bucket", "_sum", "_count"];
    let base = |word: &str| ends.iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).to_owned();
    words.filter(|word| word.starts_with("packhouse_")).map(base).collect()
}

#[test]
fn every_metric_has_a_row_and_alerts_ask_for_metrics_that_there_are() {
    let server = Server::start();
    server.anonymous().get("/repositories/x");
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let there: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(names)
        .filter(|name| name.starts_with("packhouse_"))
        .collect();
    let described = page("docs/OPERATING.md");
    let told = names(&described);
    // A row may name several that differ in their end: `packhouse_plugin_calls_in_flight`, `_waiting`, `_max`.
    let ends =
        |name: &str| name.rsplit_once('_').is_some_and(|(_, end)| described.contains(&format!("`_{end}`")));
    let missing: Vec<_> = there.iter().filter(|name| !told.contains(*name) && !ends(name)).collect();
    assert!(missing.is_empty(), "OPERATING.md has no row for {missing:?}");
    for file in ["docs/monitoring/alerts.yml", "docs/monitoring/dashboard.json"] {
        let asked = names(&page(file));
        let unknown: Vec<_> = asked.iter().filter(|name| !told.contains(*name)).collect();
        assert!(
            unknown.is_empty() && asked.len() > 5,
            "{file} asks for {unknown:?}, which OPERATING.md does not know"
        );
    }
}

#[test]
fn alerts_are_raised_by_what_they_are_for() {
    let folder = checkout().join("docs/monitoring");
    if !has("promtool") {
        return skip("the alerts", "no promtool (Debian's package prometheus) on the path");
    }
    let promtool = |words: &[&str]| run(Command::new("promtool").args(words).current_dir(&folder)).well();
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts.test.yml"]);
}

#[test]
fn the_dashboard_is_one_that_grafana_takes() {
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
