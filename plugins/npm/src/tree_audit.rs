//! The older form of an audit, which pnpm uses. The request has the tree of a lock file. The
//! response is a report, which has the advisories and the paths of the affected versions in the
//! tree.

use crate::bulk;
use packhouse_sdk::{Advisory, Failure, Repository};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of paths of one version in a report.
const PATHS: usize = 100;
/// Maximum number of bytes of all full paths together. Beyond this limit, a path consists only of
/// the package's name.
const PATH_BYTES: usize = 4 << 20;

/// The places of one version in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TreeVersion {
    /// Paths from the project to the version, such as `a>b>lib`.
    paths: Vec<String>,
    /// Set if the version is needed only for development.
    dev: bool,
    /// Set if the version is only an optional dependency.
    optional: bool,
}

/// The versions in a dependency tree.
#[derive(Default)]
pub(crate) struct Tree {
    /// Places of each version, by package and version.
    found: BTreeMap<String, BTreeMap<String, TreeVersion>>,
    /// The numbers of all dependencies, development dependencies and optional dependencies, in this
    /// order.
    counted: [u64; 3],
    /// Total size of all paths in bytes.
    path_bytes: usize,
}

impl Tree {
    /// Reads the tree of an audit request.
    pub(crate) fn of(question: &Map<String, Value>) -> Tree {
        let mut tree = Tree::default();
        tree.walk(question, "");
        tree
    }

    /// Adds the dependencies below an object. The JSON parser limits the depth of a tree, and with
    /// it the depth of the recursion.
    fn walk(&mut self, object: &Map<String, Value>, before: &str) {
        let dependencies = object.get("dependencies").and_then(Value::as_object).into_iter().flatten();
        for (name, dependency) in dependencies {
            let Some(dependency) = dependency.as_object() else { continue };
            let version = dependency.get("version").and_then(Value::as_str).unwrap_or_default();
            // An alias (`npm:name@version`) becomes the package that it stands for.
            let alias = version.strip_prefix("npm:").and_then(|real| real.rsplit_once('@'));
            let (name, version) = alias.unwrap_or((name, version));
            let fits = self.path_bytes + before.len() <= PATH_BYTES;
            let path = if before.is_empty() || !fits { name.to_owned() } else { format!("{before}>{name}") };
            let is = |flag: &str| dependency.get(flag).and_then(Value::as_bool).unwrap_or_default();
            let (dev, optional) = (is("dev"), is("optional"));
            for (count, counts) in self.counted.iter_mut().zip([true, dev, optional]) {
                *count += u64::from(counts);
            }
            let versions = self.found.entry(name.to_owned()).or_default();
            let first = !versions.contains_key(version);
            let found = versions.entry(version.to_owned()).or_default();
            found.dev = dev && (first || found.dev);
            found.optional = optional && (first || found.optional);
            if found.paths.len() < PATHS {
                self.path_bytes += path.len();
                found.paths.push(path.clone());
            }
            self.walk(dependency, &path);
        }
    }

    /// Returns the versions of all packages, in the form of a bulk audit request.
    fn question(&self) -> Map<String, Value> {
        let versions = |(name, found): (&String, &BTreeMap<String, TreeVersion>)| {
            (name.clone(), found.keys().cloned().collect::<Value>())
        };
        self.found.iter().map(versions).collect()
    }

    /// Adds the local advisories about the tree to the report of the upstreams, and returns the
    /// report. `upstream` is `None` if no upstream sent a report.
    pub(crate) fn answer(
        &self,
        repository: &Repository,
        upstream: Option<Map<String, Value>>,
    ) -> Result<Map<String, Value>, Failure> {
        let known = bulk::known(repository, &self.question())?;
        let mut report = upstream.unwrap_or_default();
        for (member, empty) in [("actions", json!([])), ("advisories", json!({})), ("muted", json!([]))] {
            report.entry(member).or_insert(empty);
        }
        let [all, dev, optional] = self.counted;
        let metadata = report.entry("metadata").or_insert_with(|| {
            json!({"dependencies": all - dev, "devDependencies": dev, "optionalDependencies": optional, "totalDependencies": all})
        });
        if let Some(metadata) = metadata.as_object_mut() {
            let none = json!({"info": 0, "low": 0, "moderate": 0, "high": 0, "critical": 0});
            metadata.entry("vulnerabilities").or_insert(none);
        }
        for (name, advisories) in known {
            for advisory in advisories {
                if let Some(versions) = self.found.get(&name) {
                    add(&mut report, &name, &advisory, versions);
                }
            }
        }
        Ok(report)
    }
}

/// Merges the reports of several upstreams about one tree. Returns `None` if there are no reports.
pub(crate) fn merged(reports: Vec<Map<String, Value>>) -> Option<Map<String, Value>> {
    let mut reports = reports.into_iter();
    let mut merged = reports.next()?;
    reports.for_each(|report| add_report(&mut merged, &report));
    Some(merged)
}

/// Adds the report of another upstream. Leaves out an advisory that an earlier report has for the
/// same package, and the actions that resolve it. An advisory gets a free number if an earlier
/// report uses its number.
fn add_report(merged: &mut Map<String, Value>, report: &Map<String, Value>) {
    let Some(stated) = report.get("advisories").and_then(Value::as_object) else { return };
    let Value::Object(advisories) = merged.entry("advisories").or_insert_with(|| json!({})) else { return };
    let before: BTreeSet<String> = advisories.values().flat_map(keys).collect();
    let is_new = |advisory: &Value| keys(advisory).iter().all(|key| !before.contains(key));
    let new: Vec<(&String, &Value)> = stated.iter().filter(|(_, advisory)| is_new(advisory)).collect();
    // Maps the number of each new advisory in `report` to its new number, or to `None` if the
    // number stays.
    let (mut numbers, mut free) = (BTreeMap::new(), 1_u64..);
    for (id, advisory) in &new {
        let is_free = |number: &u64| {
            let number = number.to_string();
            !advisories.contains_key(&number) && !stated.contains_key(&number)
        };
        let number = if advisories.contains_key(*id) { free.find(is_free) } else { None };
        let place = number.map_or_else(|| (*id).clone(), |number| number.to_string());
        advisories.insert(place, numbered(advisory, number));
        numbers.insert(id.as_str(), number);
    }
    for (_, advisory) in &new {
        let findings = advisory.get("findings").and_then(Value::as_array).into_iter().flatten();
        let places = findings.filter_map(|finding| finding.get("paths")?.as_array()).map(Vec::len).sum();
        count(merged, advisory.get("severity").and_then(Value::as_str).unwrap_or_default(), places);
    }
    let resolved = |place: &Value| {
        let number = numbers.get(place.get("id")?.to_string().as_str())?;
        Some(numbered(place, *number))
    };
    for action in report.get("actions").and_then(Value::as_array).into_iter().flatten() {
        let resolves = action.get("resolves").and_then(Value::as_array).into_iter().flatten();
        let resolves: Vec<Value> = resolves.filter_map(resolved).collect();
        if !resolves.is_empty()
            && let Value::Object(mut action) = action.clone()
        {
            action.insert("resolves".to_owned(), Value::Array(resolves));
            push_action(merged, Value::Object(action));
        }
    }
}

/// Returns the identity of an advisory about a package, which is the same for all upstreams.
fn keys(advisory: &Value) -> Vec<String> {
    let package = advisory.get("module_name").and_then(Value::as_str).unwrap_or_default();
    bulk::identity(advisory).map(|id| format!("{package}\n{id}")).collect()
}

/// Returns an advisory, or an entry of `resolves`, with its new number if there is one.
fn numbered(value: &Value, number: Option<u64>) -> Value {
    let mut value = value.clone();
    if let (Some(number), Value::Object(members)) = (number, &mut value) {
        members.insert("id".to_owned(), json!(number));
    }
    value
}

/// Adds a number of vulnerable places to the report's total for a severity.
fn count(report: &mut Map<String, Value>, severity: &str, places: usize) {
    if let Some(Value::Object(metadata)) = report.get_mut("metadata")
        && let Some(counted) = metadata.get_mut("vulnerabilities").and_then(|all| all.get_mut(severity))
    {
        *counted = json!(counted.as_u64().unwrap_or_default() + places as u64);
    }
}

fn push_action(report: &mut Map<String, Value>, action: Value) {
    if let Some(Value::Array(actions)) = report.get_mut("actions") {
        actions.push(action);
    }
}

/// Adds a local advisory, unless the report already has it.
fn add(
    report: &mut Map<String, Value>,
    name: &str,
    advisory: &Advisory,
    versions: &BTreeMap<String, TreeVersion>,
) {
    let Some(advisories) = report.get_mut("advisories").and_then(Value::as_object_mut) else { return };
    let of_package = |other: &&Value| other.get("module_name").and_then(Value::as_str) == Some(name);
    if advisories.values().filter(of_package).any(|other| bulk::is_same(other, advisory)) {
        return;
    }
    let numbers: Vec<&str> = versions.keys().map(String::as_str).collect();
    let affected = bulk::affected(advisory, &numbers);
    let affected: Vec<(&str, &TreeVersion)> =
        affected.into_iter().filter_map(|version| Some((version, versions.get(version)?))).collect();
    let mut id = bulk::number(&advisory.id);
    // The number is a hash of the advisory's id. If an advisory is about several packages, each
    // package needs its own number.
    while advisories.contains_key(&id.to_string()) {
        id = id.wrapping_add(1);
    }
    let finding = |(version, found): &(&str, &TreeVersion)| json!({"version": version, "paths": found.paths, "dev": found.dev, "optional": found.optional, "bundled": false});
    let severity = bulk::severity(advisory);
    advisories.insert(
        id.to_string(),
        json!({
            "id": id, "title": bulk::title(advisory), "module_name": name, "severity": severity, "url": advisory.url,
            "vulnerable_versions": bulk::range(advisory), "patched_versions": patched(advisory), "overview": advisory.summary,
            "findings": affected.iter().map(finding).collect::<Value>(), "cwe": advisory.cwes, "cves": cves(advisory),
            "recommendation": "", "references": "", "access": "public", "deleted": null,
        }),
    );
    let resolution = |found: &TreeVersion, path: &String| json!({"id": id, "path": path, "dev": found.dev, "optional": found.optional, "bundled": false});
    let resolves: Vec<Value> = affected
        .iter()
        .flat_map(|(_, found)| found.paths.iter().map(|path| resolution(found, path)))
        .collect();
    count(report, severity, resolves.len());
    push_action(report, json!({"action": "review", "module": name, "resolves": resolves}));
}

/// Returns the range of fixed versions in npm's notation, or `<0.0.0` if no version is fixed.
fn patched(advisory: &Advisory) -> String {
    let ranges = advisory.affected.ranges.iter().filter(|range| !range.kind.eq_ignore_ascii_case("GIT"));
    let fixed = ranges.flat_map(|range| &range.events).filter_map(|event| event.fixed.as_deref());
    let fixed: Vec<String> = fixed.map(|version| format!(">={version}")).collect();
    if fixed.is_empty() { "<0.0.0".to_owned() } else { fixed.join(" || ") }
}

fn cves(advisory: &Advisory) -> Vec<&String> {
    std::iter::once(&advisory.id).chain(&advisory.aliases).filter(|id| id.starts_with("CVE-")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            _ => unreachable!("an object"),
        }
    }

    fn advisory(id: &str) -> Advisory {
        let affected =
            json!({"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "2.0.0"}]}]});
        Advisory {
            id: id.to_owned(),
            severity: "high".to_owned(),
            aliases: vec!["CVE-2026-1".to_owned()],
            affected: serde_json::from_value(affected).unwrap(),
            ..Advisory::default()
        }
    }

    #[test]
    fn a_tree_is_read_with_the_paths_to_each_version() {
        let tree = Tree::of(&object(json!({"dependencies": {
            "a": {"version": "1.0.0", "dependencies": {"lib": {"version": "1.0.0", "dev": true}}},
            "b": {"version": "1.0.0", "dev": true, "dependencies": {"lib": {"version": "2.0.0", "dev": true}}},
            "lib": {"version": "1.0.0"}, "alias": {"version": "npm:@us/real@3.0.0", "optional": true}, "odd": 7,
        }})));
        let lib = &tree.found["lib"];
        assert_eq!(lib["1.0.0"].paths, ["a>lib", "lib"]);
        assert!(
            !lib["1.0.0"].dev && lib["2.0.0"].dev,
            "a version that is also needed elsewhere is not only for development"
        );
        assert_eq!(tree.found["@us/real"]["3.0.0"].paths, ["@us/real"]);
        assert_eq!(tree.counted, [6, 3, 1]);
        assert_eq!(tree.question()["lib"], json!(["1.0.0", "2.0.0"]));
    }

    #[test]
    fn paths_are_limited_and_no_version_is_lost() {
        let long = "p".repeat(100_000);
        let below: Map<String, Value> =
            (0..60).map(|number| (format!("lib{number}"), json!({"version": "1.0.0"}))).collect();
        let tree =
            Tree::of(&object(json!({"dependencies": {&long: {"version": "1.0.0", "dependencies": below}}})));
        let paths: Vec<&String> =
            tree.found.values().flat_map(BTreeMap::values).flat_map(|found| &found.paths).collect();
        assert_eq!(paths.len(), 61, "each version has a path");
        assert!(paths.iter().map(|path| path.len()).sum::<usize>() <= PATH_BYTES + long.len());
        assert!(
            paths.iter().any(|path| path.starts_with("lib")) && paths.iter().any(|path| path.contains('>'))
        );
    }

    #[test]
    fn reports_of_several_upstreams_are_merged() {
        let report = |module: &str, id: u64, url: &str| {
            let path = format!("a>{module}");
            object(json!({
                "actions": [{"action": "review", "module": module, "resolves": [{"id": id, "path": path}]}],
                "advisories": {(id.to_string()): {
                    "id": id, "module_name": module, "url": url, "severity": "high",
                    "findings": [{"version": "1.0.0", "paths": [path]}],
                }},
                "metadata": {"vulnerabilities": {"high": 1}},
            }))
        };
        let reports = [
            report("lib", 1, "u1"),
            report("lib", 7, "u1"),
            report("lib", 3, "u3"),
            report("lib", 1, ""),
            report("lib-es", 1, "u1"),
            report("lib-es", 5, "u1"),
            report("lib-es", 8, "u3"),
        ];
        let merged_report = merged(reports.into()).unwrap();
        let mut advisories: Vec<[String; 4]> = Vec::new();
        for (number, advisory) in merged_report["advisories"].as_object().unwrap() {
            let [module, url] =
                ["module_name", "url"].map(|name| advisory[name].as_str().unwrap().to_owned());
            advisories.push([number.clone(), advisory["id"].to_string(), module, url]);
        }
        advisories.sort();
        let expected = [
            ["1", "1", "lib", "u1"],
            ["2", "2", "lib", ""],
            ["3", "3", "lib", "u3"],
            ["4", "4", "lib-es", "u1"],
            ["8", "8", "lib-es", "u3"],
        ];
        assert_eq!(advisories, expected, "one advisory for each address and package");
        assert_eq!(merged_report["metadata"]["vulnerabilities"]["high"], 5);
        let resolves: Vec<&Value> = merged_report["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|action| &action["resolves"][0])
            .collect();
        let expected = [(1, "a>lib"), (3, "a>lib"), (2, "a>lib"), (4, "a>lib-es"), (8, "a>lib-es")];
        assert_eq!(resolves, expected.map(|(id, path)| json!({"id": id, "path": path})).each_ref());
        assert_eq!(merged(Vec::new()), None);
    }

    #[test]
    fn a_local_advisory_is_added_once_with_its_paths() {
        let tree = Tree::of(&object(json!({"dependencies": {
            "a": {"version": "1.0.0", "dependencies": {"lib": {"version": "1.0.0"}}}, "lib": {"version": "2.0.0"},
        }})));
        let mut report = object(json!({
            "actions": [], "advisories": {"9": {"module_name": "lib", "url": "https://a.example/GHSA-1"}},
            "metadata": {"vulnerabilities": {"high": 1}},
        }));
        add(&mut report, "lib", &advisory("GHSA-1"), &tree.found["lib"]);
        assert_eq!(report["advisories"].as_object().unwrap().len(), 1, "the upstream has it already");
        add(&mut report, "lib", &advisory("GHSA-2"), &tree.found["lib"]);
        let id = bulk::number("GHSA-2");
        let own = &report["advisories"][&id.to_string()];
        assert_eq!(
            own["findings"],
            json!([{"version": "1.0.0", "paths": ["a>lib"], "dev": false, "optional": false, "bundled": false}])
        );
        assert_eq!((&own["patched_versions"], &own["cves"]), (&json!(">=2.0.0"), &json!(["CVE-2026-1"])));
        assert_eq!(report["metadata"]["vulnerabilities"]["high"], 2);
        assert_eq!(report["actions"][0]["resolves"][0]["path"], "a>lib");
        add(&mut report, "lib-es", &advisory("GHSA-2"), &tree.found["lib"]);
        let own = &report["advisories"][&(id + 1).to_string()];
        assert_eq!((&own["module_name"], &own["id"]), (&json!("lib-es"), &json!(id + 1)), "one per package");
        assert_eq!(report["advisories"].as_object().unwrap().len(), 3);
    }
}
