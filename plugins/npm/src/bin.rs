//! Programs of a package: the manifest's `bin` in all its forms.

use crate::difference::Difference;
use crate::name::PackageName;
use serde_json::{Map, Value};

/// A program: the name of its link, without folders, and its path below the package's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    name: String,
    path: String,
    /// Set if yarn 1 leaves the program out because of its name or its path.
    odd: bool,
}

/// Returns the first program that only one of two manifests has. `published` is the client's
/// manifest, and `own` is the archive's `package.json`.
pub(crate) fn differing(
    name: &PackageName,
    published: &Map<String, Value>,
    own: &Map<String, Value>,
) -> Option<Difference> {
    let (published, in_archive) = (programs(name, published), programs(name, own));
    let folder = own.get("directories").and_then(|all| all.get("bin")).and_then(Value::as_str);
    let folder = folder.filter(|_| in_archive.is_empty()).map(path);
    let added = |program: &Program| {
        folder.as_ref().is_some_and(|folder| {
            let below = if folder.is_empty() {
                Some(program.path.as_str())
            } else {
                program.path.strip_prefix(folder.as_str()).and_then(|rest| rest.strip_prefix('/'))
            };
            below.is_some_and(|below| base(below) == program.name)
        })
    };
    let same = |one: &Program, other: &Program| one.name == other.name && one.path == other.path;
    let is_in_archive =
        |program: &&Program| in_archive.iter().any(|other| same(other, program)) || added(program);
    let is_published =
        |program: &&Program| program.odd || published.iter().any(|other| other.name == program.name);
    let only_published = published.iter().find(|program| !is_in_archive(program));
    let only_in_archive = in_archive.iter().find(|program| !is_published(program));
    let differs = only_published.or(only_in_archive)?;
    let at = |all: &[Program]| all.iter().find(|one| one.name == differs.name).map(|one| one.path.clone());
    Some(Difference {
        member: format!("bin.{}", differs.name),
        published: at(&published),
        own: at(&in_archive),
    })
}

/// Returns a manifest's programs as an object of names and paths, as clients publish them.
pub(crate) fn published(name: &PackageName, manifest: &Map<String, Value>) -> Map<String, Value> {
    let all = programs(name, manifest).into_iter();
    all.map(|program| (program.name, Value::String(program.path))).collect()
}

/// Returns a manifest's programs with the names and paths that clients link.
fn programs(name: &PackageName, manifest: &Map<String, Value>) -> Vec<Program> {
    let pairs: Vec<(&str, &str)> = match manifest.get("bin") {
        Some(Value::String(path)) => vec![(name.bare(), path)],
        Some(Value::Array(paths)) => {
            paths.iter().filter_map(Value::as_str).map(|path| (path, path)).collect()
        }
        Some(Value::Object(all)) => {
            all.iter().filter_map(|(name, path)| Some((name.as_str(), path.as_str()?))).collect()
        }
        _ => Vec::new(),
    };
    let all = pairs.into_iter().map(|(link, target)| {
        let odd = !is_plain(link) || target.starts_with(['/', '\\']) || leads_out(target);
        Program { name: base(&path(link)).to_owned(), path: path(target), odd }
    });
    all.filter(|program| !program.name.is_empty() && !program.path.is_empty()).collect()
}

/// Returns true if yarn 1 accepts the name of a program: letters, digits, dots, `_` and `-`.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Returns true if a path leaves the package's folder.
fn leads_out(path: &str) -> bool {
    let mut depth = 0i32;
    path.split('/').any(|part| {
        depth += match part {
            "" | "." => 0,
            ".." => -1,
            _ => 1,
        };
        depth < 0
    })
}

/// Normalizes a path, so that it stays below the package's folder and has only forward slashes.
fn path(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(['/', '\\', ':']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn member(published: &Value, own: &Value) -> Option<String> {
        let members = |value: &Value| value.as_object().cloned().unwrap();
        differing(&PackageName::new("@s/t").unwrap(), &members(published), &members(own))
            .map(|found| found.member)
    }

    #[test]
    fn every_form_is_the_same() {
        for (own, published) in [
            (json!({"bin": "./cli.js"}), json!({"bin": {"t": "cli.js"}})),
            (json!({"bin": "./cli.js"}), json!({"bin": {"@s/t": "cli.js"}})),
            (
                json!({"bin": ["./cli.js", "b/two.js"]}),
                json!({"bin": {"cli.js": "cli.js", "two.js": "b/two.js"}}),
            ),
            (json!({"bin": ["./cli.js"]}), json!({"bin": ["cli.js"]})),
            (
                json!({"bin": {"a": "./x/../cli.js", "b/c": "/cli.js", "e": 5, "q:z": "cli.js", "f": ".\\cli.js"}}),
                json!({"bin": {"a": "cli.js", "f": "cli.js", "c": "cli.js", "z": "cli.js"}}),
            ),
            (
                json!({"bin": {"a": "cli.js", "@s/t": "cli.js", "up": "../cli.js"}}),
                json!({"bin": {"a": "cli.js"}}),
            ),
            (json!({"bin": ""}), json!({})),
            (json!({"bin": null}), json!({"bin": {}})),
            (
                json!({"directories": {"bin": "./tools"}}),
                json!({"bin": {"sub": "tools/sub", "one.js": "tools/one.js", "two": "tools/sub/two"}}),
            ),
            (json!({"directories": {"bin": "./tools"}}), json!({})),
        ] {
            assert_eq!(member(&published, &own), None, "{own} / {published}");
        }
    }

    #[test]
    fn a_different_program_is_reported() {
        for (own, published, expected) in [
            (json!({"bin": "a.js"}), json!({"bin": "b.js"}), "bin.t"),
            (json!({"bin": {"a": "a.js"}}), json!({"bin": {"a": "a.js", "git": "a.js"}}), "bin.git"),
            (json!({"bin": {"a": "a.js", "git": "a.js"}}), json!({"bin": {"a": "a.js"}}), "bin.git"),
            (json!({}), json!({"bin": "a.js"}), "bin.t"),
            (json!({"directories": {"bin": "tools"}}), json!({"bin": {"one": "toolshed/one"}}), "bin.one"),
            (json!({"directories": {"bin": "tools"}}), json!({"bin": {"git": "tools/one"}}), "bin.git"),
            (
                json!({"bin": {"a": "a.js"}, "directories": {"bin": "tools"}}),
                json!({"bin": {"a": "a.js", "one": "tools/one"}}),
                "bin.one",
            ),
        ] {
            assert_eq!(member(&published, &own).as_deref(), Some(expected), "{own} / {published}");
        }
    }
}
