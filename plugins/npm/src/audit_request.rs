//! Audit requests. An audit request tells an upstream which packages a project uses. The upstream
//! must not learn the organization's own package names, so the plugin removes withheld packages
//! from the request. These are the packages whose names the host withholds from upstreams.

use packhouse_sdk::{Blob, Error, Failure, ReadAt};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Maximum number of bytes of a decompressed request, because the plugin holds the whole tree in
/// memory.
const LIMIT: u64 = 8 << 20;
/// Members of a dependency in a tree that stay when the plugin rewrites the request.
const FACTS: [&str; 5] = ["version", "integrity", "dev", "optional", "peer"];

/// A parsed audit request.
#[derive(Clone)]
pub(crate) enum AuditRequest {
    /// `{NAME: [VERSION, …]}`.
    Bulk(Map<String, Value>),
    /// The tree of a lock file.
    Tree(Map<String, Value>),
}

impl AuditRequest {
    /// Parses the body of a request. `bulk` is true if the body has the bulk form.
    ///
    /// # Errors
    /// 400 for an invalid body, 413 for a body that is too large, 415 for an unknown encoding.
    pub(crate) fn read(body: &Blob, encoding: Option<&str>, bulk: bool) -> Result<Self, Failure> {
        let bytes = match encoding.unwrap_or("identity") {
            "" | "identity" => body.read_all(LIMIT)?,
            "gzip" | "x-gzip" => unpacked(body, "gzip")?,
            "deflate" => unpacked(body, "zlib")?,
            "zstd" => unpacked(body, "zstd")?,
            other => {
                let text = format!("The content encoding {other:?} is not supported for audits; use gzip");
                return Err(Failure::new(415, "unsupported_media_type", text));
            }
        };
        let question = serde_json::from_slice::<Map<String, Value>>(&bytes);
        let question =
            question.map_err(|_| Failure::invalid("The body of an audit must be a JSON object"))?;
        Ok(if bulk { Self::Bulk(question) } else { Self::Tree(question) })
    }

    /// Returns all packages that the request names.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        match self {
            Self::Bulk(packages) => names.extend(packages.keys().cloned()),
            Self::Tree(tree) => {
                names.extend(text(tree, "name").map(str::to_owned));
                for list in ["install", "remove"] {
                    let named = tree.get(list).and_then(Value::as_array).into_iter().flatten();
                    names.extend(named.filter_map(Value::as_str).map(|spec| name_in(spec).to_owned()));
                }
                collect(tree, &mut names);
            }
        }
        names.into_iter().collect()
    }

    /// Returns the request without these packages, as JSON. Returns `None` if no package is left.
    pub(crate) fn without(self, withheld: &BTreeSet<String>) -> Result<Option<Vec<u8>>, Failure> {
        let left = match self {
            Self::Bulk(mut packages) => {
                packages.retain(|name, _| !withheld.contains(name));
                if packages.is_empty() {
                    return Ok(None);
                }
                packages
            }
            Self::Tree(tree) => {
                let mut left = pruned(&tree, withheld);
                let empty =
                    |member: &str| left.get(member).and_then(Value::as_object).is_none_or(Map::is_empty);
                if empty("requires") && empty("dependencies") {
                    return Ok(None);
                }
                for (member, value) in tree {
                    let value = match (member.as_str(), value) {
                        ("requires" | "dependencies", _) => continue,
                        ("name", Value::String(name)) if withheld.contains(&name) => continue,
                        ("install" | "remove", Value::Array(specs)) => {
                            let other =
                                |spec: &Value| !withheld.contains(name_in(spec.as_str().unwrap_or_default()));
                            Value::Array(specs.into_iter().filter(other).collect())
                        }
                        ("name" | "version" | "metadata" | "install" | "remove", value) => value,
                        _ => continue,
                    };
                    left.insert(member, value);
                }
                left
            }
        };
        Ok(Some(serde_json::to_vec(&left)?))
    }
}

fn unpacked(body: &Blob, encoding: &str) -> Result<Vec<u8>, Failure> {
    let unpacked = body.decode(encoding, LIMIT, &[]).and_then(|blob| blob.read_all(LIMIT));
    unpacked.map_err(|error| match error {
        Error::Invalid(_) => Failure::invalid(format!(
            "The body of the audit is not {encoding}, although its Content-Encoding says so"
        )),
        other => other.into(),
    })
}

fn text<'a>(object: &'a Map<String, Value>, member: &str) -> Option<&'a str> {
    object.get(member).and_then(Value::as_str)
}

fn members<'a>(
    object: &'a Map<String, Value>,
    member: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(member).and_then(Value::as_object).into_iter().flatten()
}

/// Returns the package in `name@range`.
fn name_in(spec: &str) -> &str {
    let at = spec.char_indices().skip(1).find(|(_, letter)| *letter == '@');
    at.and_then(|(at, _)| spec.get(..at)).unwrap_or(spec)
}

/// Returns the package that an alias (`npm:name@range`) stands for; `None` for any other range.
fn aliased(range: &Value) -> Option<&str> {
    range.as_str()?.strip_prefix("npm:").map(name_in)
}

/// Collects the packages in the `dependencies` and `requires` of a tree. The JSON parser limits the
/// depth of a tree, and with it the depth of the recursion.
fn collect(tree: &Map<String, Value>, names: &mut BTreeSet<String>) {
    for (name, range) in members(tree, "requires") {
        names.insert(name.clone());
        names.extend(aliased(range).map(str::to_owned));
    }
    for (name, dependency) in members(tree, "dependencies") {
        names.insert(name.clone());
        let Some(dependency) = dependency.as_object() else { continue };
        names.extend(dependency.get("version").and_then(aliased).map(str::to_owned));
        collect(dependency, names);
    }
}

/// Returns the members `requires` and `dependencies` of a tree, without the withheld packages. Each
/// dependency keeps only the members that an audit needs.
fn pruned(tree: &Map<String, Value>, withheld: &BTreeSet<String>) -> Map<String, Value> {
    let is_withheld = |name: &str, range: Option<&Value>| {
        withheld.contains(name) || range.and_then(aliased).is_some_and(|name| withheld.contains(name))
    };
    let mut left = Map::new();
    if let Some(requires) = tree.get("requires").filter(|requires| !requires.is_object()) {
        left.insert("requires".to_owned(), requires.clone());
    } else if tree.contains_key("requires") {
        let others = members(tree, "requires").filter(|(name, range)| !is_withheld(name, Some(range)));
        let others: Map<String, Value> = others.map(|(name, range)| (name.clone(), range.clone())).collect();
        left.insert("requires".to_owned(), Value::Object(others));
    }
    if tree.contains_key("dependencies") {
        let mut dependencies = Map::new();
        for (name, dependency) in members(tree, "dependencies") {
            let Some(dependency) = dependency.as_object() else { continue };
            let within = pruned(dependency, withheld);
            // The tree has the dependencies of a withheld package below that package. They move up
            // one level, so that they stay in the request.
            if is_withheld(name, dependency.get("version")) {
                let Some(Value::Object(below)) = within.get("dependencies") else { continue };
                for (name, dependency) in below {
                    dependencies.entry(name.clone()).or_insert_with(|| dependency.clone());
                }
                continue;
            }
            let facts =
                FACTS.iter().filter_map(|fact| Some(((*fact).to_owned(), dependency.get(*fact)?.clone())));
            let dependency: Map<String, Value> = facts.chain(within).collect();
            dependencies.insert(name.clone(), Value::Object(dependency));
        }
        left.insert("dependencies".to_owned(), Value::Object(dependencies));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree(value: Value) -> AuditRequest {
        match value {
            Value::Object(tree) => AuditRequest::Tree(tree),
            _ => unreachable!("an object"),
        }
    }

    fn withheld(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_tree_names_packages_in_many_places() {
        let question = tree(json!({
            "name": "app", "version": "1.0.0", "install": ["@us/new@^1"], "remove": ["old"],
            "requires": {"lib": "^1", "alias": "npm:@us/real@^2"},
            "dependencies": {"lib": {"version": "1.0.0", "requires": {"deep": "1"}, "dependencies": {
                "deep": {"version": "npm:@us/deeper@1.0.0"}}}},
        }));
        let expected = ["@us/deeper", "@us/new", "@us/real", "alias", "app", "deep", "lib", "old"];
        assert_eq!(question.names(), expected);
    }

    #[test]
    fn withheld_packages_are_removed_everywhere() {
        let question = || {
            tree(json!({
                "name": "app", "version": "1.0.0", "install": ["@us/new@^1", "x@1"], "remove": [], "metadata": {"node": "24"},
                "resolved": "https://ours.example/@us/a",
                "requires": {"lib": "^1", "@us/a": "1", "alias": "npm:@us/real@^2"},
                "dependencies": {
                    "@us/a": {"version": "1.0.0", "dependencies": {"brought": {"version": "2.0.0"}}},
                    "alias": {"version": "npm:@us/real@2.0.0"},
                    "lib": {"version": "1.0.0", "resolved": "https://ours.example/lib", "requires": {"@us/a": "1", "b": "1"},
                        "dependencies": {"b": {"version": "1.0.0"}, "@us/a": {"version": "2.0.0"}}},
                },
            }))
        };
        let names = withheld(&["@us/a", "@us/real", "@us/new", "app"]);
        let left: Value = serde_json::from_slice(&question().without(&names).unwrap().unwrap()).unwrap();
        assert_eq!(
            left,
            json!({
                "version": "1.0.0", "install": ["x@1"], "remove": [], "metadata": {"node": "24"},
                "requires": {"lib": "^1"},
                "dependencies": {
                    "brought": {"version": "2.0.0"},
                    "lib": {"version": "1.0.0", "requires": {"b": "1"}, "dependencies": {"b": {"version": "1.0.0"}}},
                },
            })
        );
        let all = withheld(&["lib", "@us/a", "alias", "b", "brought", "@us/real"]);
        assert!(question().without(&all).unwrap().is_none());
    }

    #[test]
    fn specifications_begin_with_a_name() {
        for (spec, name) in [("a", "a"), ("a@1", "a"), ("@s/a", "@s/a"), ("@s/a@^1", "@s/a"), ("", "")] {
            assert_eq!(name_in(spec), name);
        }
    }
}
