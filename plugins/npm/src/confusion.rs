//! Manifest confusion: a package whose own `package.json` says something else than the manifest that is published with it. Clients
//! choose what to install by the manifest, and run what the archive says.
//!
//! The clients change some of it on the way, between the file that they pack and the document that they send. What they make of a
//! file is the same, so both sides are brought into one form and compared:
//!
//! | member | what clients change |
//! | --- | --- |
//! | `dependencies`, … | npm: lists and texts become objects, addresses of git hosts get one spelling, a bundled package that is no dependency becomes one of `*`. yarn 1 and old npm: what is optional leaves `dependencies`, or stands there too |
//! | `scripts` | npm, pnpm: the path before a program of a dependency's goes. npm, pnpm, yarn 1: a `*.gyp` file gives `install`, a `server.js` gives `start` |
//! | `bin` | all but yarn 4: a text, a list and `directories.bin` become an object of plain names and paths. yarn 1 leaves out names and paths that lead elsewhere |
//!
//! Workspace and catalog ranges and `publishConfig` are replaced in the archive too.

use crate::bin;
use crate::difference::Difference;
use crate::name::Name;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Members that say what is installed besides the package, as far as clients follow them.
const DEPENDENCIES: &str = "dependencies";
const OPTIONAL: &str = "optionalDependencies";
const PEERS: &str = "peerDependencies";

/// Scripts that clients add, by what lies in the package's folder, where it has none of that name.
const ADDED: [(&str, &str); 2] = [("install", "node-gyp rebuild"), ("start", "node server.js")];

/// Where npm does not look up a program of a dependency's.
const PROGRAMS: [&str; 3] = ["node_modules/.bin/", "./node_modules/.bin/", ".\\node_modules\\.bin\\"];

/// Git hosts by the word that stands for them.
const HOSTS: [(&str, &str); 5] = [
    ("github", "github.com"),
    ("gitlab", "gitlab.com"),
    ("bitbucket", "bitbucket.org"),
    ("gist", "gist.github.com"),
    ("sourcehut", "git.sr.ht"),
];

/// Members by name.
type Members = Map<String, Value>;
/// Texts by name.
type Texts = BTreeMap<String, String>;

/// The first thing in which a manifest that is published differs from the package's own; none where a client made the one of the
/// other.
pub(crate) fn find(name: &Name, published: &Members, own: &Members) -> Option<Difference> {
    let added = bundled(own);
    let is_bundled = |entry: &str, text: &str| text == "*" && added.contains(entry);
    let nothing = |_: &str, _: &str| false;
    differing(DEPENDENCIES, &required(published), &required(own), is_bundled)
        .or_else(|| {
            differing(OPTIONAL, &requirements(published, OPTIONAL), &requirements(own, OPTIONAL), nothing)
        })
        .or_else(|| differing(PEERS, &requirements(published, PEERS), &requirements(own, PEERS), nothing))
        .or_else(|| scripts_differ(&scripts(published), &scripts(own)))
        .or_else(|| bin::differing(name, published, own))
}

/// The first entry that is not the same on both sides, but for what may be added.
fn differing(
    member: &str,
    published: &Texts,
    own: &Texts,
    may_be_added: impl Fn(&str, &str) -> bool,
) -> Option<Difference> {
    let names: BTreeSet<&String> = published.keys().chain(own.keys()).collect();
    let differs = |name: &&&String| match (published.get(**name), own.get(**name)) {
        (Some(text), None) => !may_be_added(name, text),
        (said, is) => said != is,
    };
    names.iter().find(differs).map(|name| Difference {
        member: format!("{member}.{name}"),
        published: published.get(*name).cloned(),
        own: own.get(*name).cloned(),
    })
}

fn scripts_differ(published: &Texts, own: &Texts) -> Option<Difference> {
    let mut own = own.clone();
    for (name, text) in ADDED {
        // An empty one is none to the clients that add theirs.
        if published.get(name).is_some_and(|said| said == text) && own.get(name).is_some_and(String::is_empty)
        {
            own.remove(name);
        }
    }
    differing("scripts", published, &own, |name, text| ADDED.contains(&(name, text)))
}

/// Scripts by name, each as npm would run it. What is no text is none.
fn scripts(manifest: &Members) -> Texts {
    let all = manifest.get("scripts").and_then(Value::as_object).into_iter().flatten();
    let text = |text: &str| {
        let rest = PROGRAMS.iter().find_map(|before| text.strip_prefix(before));
        rest.unwrap_or(text).to_owned()
    };
    all.filter_map(|(name, script)| Some((name.clone(), text(script.as_str()?)))).collect()
}

/// What is installed with the package, whatever else: without what is optional, which some list twice.
fn required(manifest: &Members) -> Texts {
    let optional = requirements(manifest, OPTIONAL);
    let mut all = requirements(manifest, DEPENDENCIES);
    all.retain(|name, _| !optional.contains_key(name));
    all
}

/// Packages and what is wanted of them, as they stand in this member: an object, or as in old days a list or a text.
fn requirements(manifest: &Members, member: &str) -> Texts {
    match manifest.get(member) {
        Some(Value::Object(all)) => {
            // A comment is no package.
            let packages = all.iter().filter(|(name, _)| *name != "//");
            packages.map(|(name, wanted)| (name.clone(), wanted_text(wanted))).collect()
        }
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(listed).collect(),
        Some(Value::String(text)) => text
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|part| !part.is_empty())
            .map(listed)
            .collect(),
        _ => Texts::new(),
    }
}

fn wanted_text(wanted: &Value) -> String {
    match wanted {
        Value::String(text) => hosted(text).unwrap_or_else(|| text.clone()),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `name@range` or `name >=range` in a list.
fn listed(text: &str) -> (String, String) {
    let text = text.trim();
    let end = text
        .find(|c: char| c == '@' || c.is_whitespace() || matches!(c, '<' | '>' | '='))
        .unwrap_or(text.len());
    let (name, wanted) = text.split_at_checked(end).unwrap_or((text, ""));
    let wanted = wanted.strip_prefix('@').unwrap_or(wanted).trim();
    (name.strip_suffix(':').unwrap_or(name).to_owned(), hosted(wanted).unwrap_or_else(|| wanted.to_owned()))
}

/// Packages that lie in the archive itself.
fn bundled(manifest: &Members) -> BTreeSet<String> {
    let said = manifest.get("bundleDependencies").filter(|value| !value.is_null());
    match said.or_else(|| manifest.get("bundledDependencies")) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Object(all)) => all.keys().cloned().collect(),
        _ => BTreeSet::new(),
    }
}

/// The repository at a git host that a requirement names, in one spelling: npm has several for each, and writes its own.
fn hosted(text: &str) -> Option<String> {
    let (address, commit) = text.trim().split_once('#').unwrap_or((text.trim(), ""));
    let (host, path) = located(address)?;
    let path = path.trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let (parts, commit) = match parts.as_slice() {
        [user, project, "tree", branch] if host == "github" => (vec![*user, *project], *branch),
        all => (all.to_vec(), commit),
    };
    let fits = match host {
        "gist" => matches!(parts.len(), 1 | 2),
        "gitlab" => parts.len() >= 2 && !parts.contains(&"-"),
        _ => parts.len() == 2,
    };
    if !fits || parts.contains(&"") {
        return None;
    }
    let path = parts.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path);
    Some(if commit.is_empty() { format!("{host}:{path}") } else { format!("{host}:{path}#{commit}") })
}

/// The git host that an address names, and the path there.
fn located(address: &str) -> Option<(&'static str, &str)> {
    let by_domain = |domain: &str| {
        let domain = domain.rsplit_once('@').map_or(domain, |(_, domain)| domain).to_ascii_lowercase();
        let domain = domain.strip_prefix("www.").unwrap_or(&domain);
        HOSTS.iter().find(|(_, known)| *known == domain).map(|(host, _)| *host)
    };
    if let Some((scheme, rest)) = address.split_once("://") {
        let scheme = scheme.strip_prefix("git+").unwrap_or(scheme);
        let (domain, path) = rest.split_once('/')?;
        return matches!(scheme, "git" | "ssh" | "https" | "http").then_some((by_domain(domain)?, path));
    }
    match address.split_once(':') {
        Some((word, path)) => {
            let host = HOSTS.iter().find(|(host, _)| *host == word).map(|(host, _)| *host);
            Some((host.or_else(|| by_domain(word).filter(|_| word.contains('@')))?, path))
        }
        // The shortest form: a user and a project at GitHub.
        None if address.starts_with(['.', '/', '~', '@']) || address.contains(char::is_whitespace) => None,
        None => Some(("github", address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn member(published: &Value, own: &Value) -> Option<String> {
        let members = |value: &Value| value.as_object().cloned().unwrap();
        find(&Name::new("@s/t").unwrap(), &members(published), &members(own)).map(|found| found.member)
    }

    /// As npm 10 and 11, pnpm 10, yarn 1, yarn 4 and bun send them.
    #[test]
    fn what_clients_change_is_no_difference() {
        for (own, published) in [
            (json!({}), json!({"scripts": {"install": "node-gyp rebuild"}, "gypfile": true})),
            (
                json!({"scripts": {"preinstall": "x"}}),
                json!({"scripts": {"preinstall": "x", "install": "node-gyp rebuild"}}),
            ),
            (json!({"scripts": {"install": ""}}), json!({"scripts": {"install": "node-gyp rebuild"}})),
            (json!({"scripts": null}), json!({"scripts": {"start": "node server.js"}})),
            (
                json!({"scripts": {"test": "./node_modules/.bin/mocha", "n": 5}}),
                json!({"scripts": {"test": "mocha"}}),
            ),
            (json!({"scripts": "x"}), json!({})),
            (
                json!({"dependencies": {"a": "1", "b": "2"}, "optionalDependencies": {"b": "2"}}),
                json!({"dependencies": {"a": "1"}, "optionalDependencies": {"b": "2"}}),
            ),
            (
                json!({"dependencies": {"a": "1"}, "optionalDependencies": {"b": "2"}}),
                json!({"dependencies": {"a": "1", "b": "2"}, "optionalDependencies": {"b": "2"}}),
            ),
            (
                json!({"dependencies": {"x": "1"}, "bundledDependencies": ["x", "y"]}),
                json!({"dependencies": {"x": "1", "y": "*"}, "bundleDependencies": ["x", "y"]}),
            ),
            (json!({"dependencies": null}), json!({})),
            (json!({"dependencies": {}, "scripts": {}}), json!({})),
            (json!({"dependencies": {"a": "1", "//": "why"}}), json!({"dependencies": {"a": "1"}})),
            (
                json!({"dependencies": ["a@^1", "b >=2", "c"]}),
                json!({"dependencies": {"a": "^1", "b": ">=2", "c": ""}}),
            ),
            (json!({"dependencies": "a@^1, b@2"}), json!({"dependencies": {"a": "^1", "b": "2"}})),
        ] {
            assert_eq!(member(&published, &own), None, "{own} / {published}");
        }
    }

    #[test]
    fn what_no_client_changes_is_one() {
        for (own, published, expected) in [
            (json!({}), json!({"dependencies": {"a": "1"}}), "dependencies.a"),
            (json!({"dependencies": {"a": "1"}}), json!({}), "dependencies.a"),
            (json!({"dependencies": {"a": "1"}}), json!({"dependencies": {"a": "2"}}), "dependencies.a"),
            (
                json!({"dependencies": {"a": "1"}}),
                json!({"optionalDependencies": {"a": "1"}}),
                "dependencies.a",
            ),
            (json!({}), json!({"optionalDependencies": {"a": "1"}}), "optionalDependencies.a"),
            (json!({"peerDependencies": {"a": "1"}}), json!({}), "peerDependencies.a"),
            (json!({"bundledDependencies": ["y"]}), json!({"dependencies": {"y": "1"}}), "dependencies.y"),
            (json!({}), json!({"dependencies": {"y": "*"}, "bundledDependencies": ["y"]}), "dependencies.y"),
            (json!({"scripts": {"postinstall": "evil"}}), json!({}), "scripts.postinstall"),
            (
                json!({"scripts": {"install": "evil"}}),
                json!({"scripts": {"install": "node-gyp rebuild"}}),
                "scripts.install",
            ),
            (json!({}), json!({"scripts": {"install": "other"}}), "scripts.install"),
            (json!({"bin": "evil.js"}), json!({}), "bin.t"),
        ] {
            assert_eq!(member(&published, &own).as_deref(), Some(expected), "{own} / {published}");
        }
    }

    #[test]
    fn every_spelling_of_a_git_host_is_the_same() {
        for text in [
            "u/r",
            "github:u/r",
            "https://github.com/u/r.git",
            "git+https://github.com/u/r.git",
            "git@github.com:u/r.git",
            "git+ssh://git@github.com/u/r.git",
            "git://www.GitHub.com/u/r",
        ] {
            assert_eq!(hosted(text).as_deref(), Some("github:u/r"), "{text}");
        }
        for text in ["https://github.com/u/r/tree/main", "git+https://github.com/u/r.git#main"] {
            assert_eq!(hosted(text).as_deref(), Some("github:u/r#main"), "{text}");
        }
        assert_eq!(hosted("gitlab:g/s/r#v1").as_deref(), Some("gitlab:g/s/r#v1"));
        for text in [
            "^1.0.0",
            "",
            "latest",
            "npm:foo@1",
            "file:../x",
            "./u/r",
            "~/u",
            "@s/r",
            "https://x.test/a.tgz",
            "https://github.com/u/r/archive/x.tar.gz",
            "workspace:^",
            "1 - 2",
            ">=1 <2/3",
        ] {
            assert_eq!(hosted(text), None, "{text}");
        }
    }
}
