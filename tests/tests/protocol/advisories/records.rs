//! Builder of OSV records, in the form in which databases publish them.

use serde_json::{Value, json};

/// A builder of a record.
#[derive(Clone)]
pub(crate) struct Record(pub(crate) Value);

impl Record {
    /// Creates a record about this package that names no affected version yet.
    pub(crate) fn new(id: &str, ecosystem: &str, package: &str) -> Record {
        Record(json!({
            "schema_version": "1.6.0", "id": id, "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
            "summary": "Something is wrong", "details": "More of it.",
            "affected": [{"package": {"ecosystem": ecosystem, "name": package}, "ranges": [], "versions": []}],
            "references": [{"type": "ADVISORY", "url": format!("https://advisories.example/{id}")}],
        }))
    }

    fn range(mut self, events: &Value) -> Record {
        let kind =
            if self.0["affected"][0]["package"]["ecosystem"] == "npm" { "SEMVER" } else { "ECOSYSTEM" };
        let ranges = self.0["affected"][0]["ranges"].as_array_mut().unwrap();
        ranges.push(json!({"type": kind, "events": events}));
        self
    }

    /// Adds all versions below this one.
    pub(crate) fn below(self, fixed: &str) -> Record {
        self.range(&json!([{"introduced": "0"}, {"fixed": fixed}]))
    }

    /// Adds the versions from `introduced` up to, but not including, `fixed`.
    pub(crate) fn between(self, introduced: &str, fixed: &str) -> Record {
        self.range(&json!([{"introduced": introduced}, {"fixed": fixed}]))
    }

    /// Adds every version.
    pub(crate) fn range_of_all(self) -> Record {
        self.range(&json!([{"introduced": "0"}]))
    }

    /// Adds these versions.
    pub(crate) fn listed(mut self, versions: &[&str]) -> Record {
        self.0["affected"][0]["versions"] = json!(versions);
        self
    }

    pub(crate) fn high(mut self, summary: &str) -> Record {
        self.0["summary"] = json!(summary);
        self.0["database_specific"] = json!({"severity": "HIGH", "cwe_ids": ["CWE-200"]});
        self
    }

    /// Sets the modification time.
    pub(crate) fn modified(mut self, at: &str) -> Record {
        self.0["modified"] = json!(at);
        self
    }

    pub(crate) fn withdrawn(mut self) -> Record {
        self.0["withdrawn"] = json!("2026-02-01T00:00:00Z");
        self
    }
}
