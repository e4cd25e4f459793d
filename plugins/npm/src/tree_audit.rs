//! The older form of an audit, which pnpm asks: the tree of a lock file, answered with what is known of it and where in the
//! tree it stands.

use crate::bulk;
use packhouse_sdk::{Advisory, Failure, Repository};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Places of one version in a tree that are told.
const PATHS: usize = 100;
/// Bytes of all places: behind them a version stands by its name alone.
const PATH_BYTES: usize = 4 << 20;

/// Where a version stands in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    /// The packages that lead to it, from the project on, each place as `a>b>it`.
    paths: Vec<String>,
    /// Whether it is there for development alone.
    dev: bool,
    /// Whether the project does without it.
    optional: bool,
}

/// What a tree is made of.
#[derive(Default)]
pub(crate) struct Tree {
    /// By package and version.
    found: BTreeMap<String, BTreeMap<String, Found>>,
    /// How many there are in all, for development alone, and that the project does without.
    counted: [u64; 3],
    /// Bytes of the places that are told.
    path_bytes: usize,
}

impl Tree {
    /// The tree that an audit asks about.
    pub(crate) fn of(question: &Map<String, Value>) -> Tree {
        let mut tree = Tree::default();
        tree.walk(question, "");
        tree
    }

    /// The parser bounds how deep a tree may be.
    fn walk(&mut self, object: &Map<String, Value>, before: &str) {
        let dependencies = object.get("dependencies").and_then(Value::as_object).into_iter().flatten();
        for (name, dependency) in dependencies {
            let Some(dependency) = dependency.as_object() else { continue };
            let version = dependency.get("version").and_then(Value::as_str).unwrap_or_default();
            // An alias: the package that it stands for.
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

    /// Which versions of which packages there are, as the newer form asks.
    fn question(&self) -> Map<String, Value> {
        let versions = |(name, found): (&String, &BTreeMap<String, Found>)| {
            (name.clone(), found.keys().cloned().collect::<Value>())
        };
        self.found.iter().map(versions).collect()
    }

    /// What is known here of a tree, added to what an upstream says of it; none: there is nobody else to ask.
    pub(crate) fn answer(
        &self,
        repository: &Repository,
        upstream: Option<Map<String, Value>>,
    ) -> Result<Map<String, Value>, Failure> {
        let known = bulk::known(repository, &self.question())?;
        let mut told = upstream.unwrap_or_default();
        for (member, empty) in [("actions", json!([])), ("advisories", json!({})), ("muted", json!([]))] {
            told.entry(member).or_insert(empty);
        }
        let [all, dev, optional] = self.counted;
        let metadata = told.entry("metadata").or_insert_with(|| {
            json!({"dependencies": all - dev, "devDependencies": dev, "optionalDependencies": optional, "totalDependencies": all})
        });
        if let Some(metadata) = metadata.as_object_mut() {
            let none = json!({"info": 0, "low": 0, "moderate": 0, "high": 0, "critical": 0});
            metadata.entry("vulnerabilities").or_insert(none);
        }
        for (name, advisories) in known {
            for advisory in advisories {
                if let Some(versions) = self.found.get(&name) {
                    add(&mut told, &name, &advisory, versions);
                }
            }
        }
        Ok(told)
    }
}

/// Several upstreams' reports about one tree as one report; none without a report.
pub(crate) fn merged(reports: Vec<Map<String, Value>>) -> Option<Map<String, Value>> {
    let mut reports = reports.into_iter();
    let mut told = reports.next()?;
    reports.for_each(|report| add_report(&mut told, &report));
    Some(told)
}

/// Adds what one more upstream says. An advisory that an upstream before told about the package is left out,
/// with the actions for it. One whose number another one has gets a number that is free.
fn add_report(told: &mut Map<String, Value>, report: &Map<String, Value>) {
    let Some(stated) = report.get("advisories").and_then(Value::as_object) else { return };
    let Value::Object(advisories) = told.entry("advisories").or_insert_with(|| json!({})) else { return };
    let before: BTreeSet<String> = advisories.values().flat_map(keys).collect();
    let is_new = |advisory: &Value| keys(advisory).iter().all(|key| !before.contains(key));
    let new: Vec<(&String, &Value)> = stated.iter().filter(|(_, advisory)| is_new(advisory)).collect();
    // By the numbers of those that are new, the numbers that they get here.
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
        count(told, advisory.get("severity").and_then(Value::as_str).unwrap_or_default(), places);
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
            push_action(told, Value::Object(action));
        }
    }
}

/// By what an advisory about a package is told to be the same.
fn keys(advisory: &Value) -> Vec<String> {
    let of = advisory.get("module_name").and_then(Value::as_str).unwrap_or_default();
    bulk::marks(advisory).map(|mark| format!("{of}\n{mark}")).collect()
}

/// An advisory, or a place that it names, with another number if there is one.
fn numbered(value: &Value, number: Option<u64>) -> Value {
    let mut value = value.clone();
    if let (Some(number), Value::Object(members)) = (number, &mut value) {
        members.insert("id".to_owned(), json!(number));
    }
    value
}

/// Counts vulnerable places in the tree.
fn count(told: &mut Map<String, Value>, severity: &str, places: usize) {
    if let Some(Value::Object(metadata)) = told.get_mut("metadata")
        && let Some(counted) = metadata.get_mut("vulnerabilities").and_then(|all| all.get_mut(severity))
    {
        *counted = json!(counted.as_u64().unwrap_or_default() + places as u64);
    }
}

fn push_action(told: &mut Map<String, Value>, action: Value) {
    if let Some(Value::Array(actions)) = told.get_mut("actions") {
        actions.push(action);
    }
}

/// Adds one, unless the upstream tells it itself.
fn add(told: &mut Map<String, Value>, name: &str, advisory: &Advisory, versions: &BTreeMap<String, Found>) {
    let Some(advisories) = told.get_mut("advisories").and_then(Value::as_object_mut) else { return };
    let of_package = |other: &&Value| other.get("module_name").and_then(Value::as_str) == Some(name);
    if advisories.values().filter(of_package).any(|other| bulk::is_same(other, advisory)) {
        return;
    }
    let numbers: Vec<&str> = versions.keys().map(String::as_str).collect();
    let affected = bulk::affected(advisory, &numbers);
    let affected: Vec<(&str, &Found)> =
        affected.into_iter().filter_map(|version| Some((version, versions.get(version)?))).collect();
    let mut id = bulk::number(&advisory.id);
    // One advisory may be about several packages, each of which has a number of its own.
    while advisories.contains_key(&id.to_string()) {
        id = id.wrapping_add(1);
    }
    let finding = |(version, found): &(&str, &Found)| json!({"version": version, "paths": found.paths, "dev": found.dev, "optional": found.optional, "bundled": false});
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
    let resolution = |found: &Found, path: &String| json!({"id": id, "path": path, "dev": found.dev, "optional": found.optional, "bundled": false});
    let resolves: Vec<Value> = affected
        .iter()
        .flat_map(|(_, found)| found.paths.iter().map(|path| resolution(found, path)))
        .collect();
    count(told, severity, resolves.len());
    push_action(told, json!({"action": "review", "module": name, "resolves": resolves}));
}

/// From which versions on it is mended, as npm writes it; `<0.0.0` where none is.
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
    fn a_tree_is_walked_with_the_ways_to_each_version() {
        let tree = Tree::of(&object(json!({"dependencies": {
            "a": {"version": "1.0.0", "dependencies": {"lib": {"version": "1.0.0", "dev": true}}},
            "b": {"version": "1.0.0", "dev": true, "dependencies": {"lib": {"version": "2.0.0", "dev": true}}},
            "lib": {"version": "1.0.0"}, "alias": {"version": "npm:@us/real@3.0.0", "optional": true}, "odd": 7,
        }})));
        let lib = &tree.found["lib"];
        assert_eq!(lib["1.0.0"].paths, ["a>lib", "lib"]);
        assert!(
            !lib["1.0.0"].dev && lib["2.0.0"].dev,
            "what is needed by anything else is not for development alone"
        );
        assert_eq!(tree.found["@us/real"]["3.0.0"].paths, ["@us/real"]);
        assert_eq!(tree.counted, [6, 3, 1]);
        assert_eq!(tree.question()["lib"], json!(["1.0.0", "2.0.0"]));
    }

    #[test]
    fn places_are_bounded_and_no_version_is_lost() {
        let long = "p".repeat(100_000);
        let below: Map<String, Value> =
            (0..60).map(|number| (format!("lib{number}"), json!({"version": "1.0.0"}))).collect();
        let tree =
            Tree::of(&object(json!({"dependencies": {&long: {"version": "1.0.0", "dependencies": below}}})));
        let paths: Vec<&String> =
            tree.found.values().flat_map(BTreeMap::values).flat_map(|found| &found.paths).collect();
        assert_eq!(paths.len(), 61, "each stands somewhere");
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
        let told = merged(reports.into()).unwrap();
        let mut advisories: Vec<[String; 4]> = Vec::new();
        for (number, advisory) in told["advisories"].as_object().unwrap() {
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
        assert_eq!(advisories, expected, "of one address, one for each package");
        assert_eq!(told["metadata"]["vulnerabilities"]["high"], 5);
        let resolves: Vec<&Value> =
            told["actions"].as_array().unwrap().iter().map(|action| &action["resolves"][0]).collect();
        let expected = [(1, "a>lib"), (3, "a>lib"), (2, "a>lib"), (4, "a>lib-es"), (8, "a>lib-es")];
        assert_eq!(resolves, expected.map(|(id, path)| json!({"id": id, "path": path})).each_ref());
        assert_eq!(merged(Vec::new()), None);
    }

    #[test]
    fn what_is_known_stands_where_it_is_and_once() {
        let tree = Tree::of(&object(json!({"dependencies": {
            "a": {"version": "1.0.0", "dependencies": {"lib": {"version": "1.0.0"}}}, "lib": {"version": "2.0.0"},
        }})));
        let mut told = object(json!({
            "actions": [], "advisories": {"9": {"module_name": "lib", "url": "https://a.example/GHSA-1"}},
            "metadata": {"vulnerabilities": {"high": 1}},
        }));
        add(&mut told, "lib", &advisory("GHSA-1"), &tree.found["lib"]);
        assert_eq!(told["advisories"].as_object().unwrap().len(), 1, "the upstream tells it itself");
        add(&mut told, "lib", &advisory("GHSA-2"), &tree.found["lib"]);
        let id = bulk::number("GHSA-2");
        let own = &told["advisories"][&id.to_string()];
        assert_eq!(
            own["findings"],
            json!([{"version": "1.0.0", "paths": ["a>lib"], "dev": false, "optional": false, "bundled": false}])
        );
        assert_eq!((&own["patched_versions"], &own["cves"]), (&json!(">=2.0.0"), &json!(["CVE-2026-1"])));
        assert_eq!(told["metadata"]["vulnerabilities"]["high"], 2);
        assert_eq!(told["actions"][0]["resolves"][0]["path"], "a>lib");
        add(&mut told, "lib-es", &advisory("GHSA-2"), &tree.found["lib"]);
        let own = &told["advisories"][&(id + 1).to_string()];
        assert_eq!((&own["module_name"], &own["id"]), (&json!("lib-es"), &json!(id + 1)), "of both packages");
        assert_eq!(told["advisories"].as_object().unwrap().len(), 3);
    }
}
