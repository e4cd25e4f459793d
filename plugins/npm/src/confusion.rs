//! Manifest confusion: the `package.json` in a package's archive differs from the manifest that the
//! client publishes with the archive. Installers select dependencies by the manifest, but run the
//! files of the archive. The repository therefore serves the values from the archive.
//!
//! Some differences are harmless: clients themselves change members of the `package.json` before
//! they send it as the manifest. This module therefore normalizes the archive's `package.json` and
//! the manifest before it compares them. If the normalized members are equal, the repository serves
//! the client's manifest. Clients make these changes:
//!
//! - `dependencies` and similar members, npm: lists and texts become objects. Addresses of git
//!   hosts get one spelling. A bundled package that is not a dependency becomes a dependency with
//!   the range `*`.
//! - `dependencies`, yarn 1 and old npm: the client removes the optional dependencies from this
//!   member, or adds them to it.
//! - `scripts`, npm and pnpm: the client removes the path before a dependency's program.
//! - `scripts`, npm, pnpm and yarn 1: a `*.gyp` file adds `install`, a `server.js` adds `start`.
//! - `bin`, all clients but yarn 4: a text, a list and `directories.bin` become an object of plain
//!   names and paths. yarn 1 leaves out programs with other names, and programs outside the
//!   package's folder.
//!
//! Clients also replace workspace ranges, catalog ranges and `publishConfig`. They replace these in
//! the archive too, so the archive and the manifest stay equal.

use crate::bin;
use crate::difference::Difference;
use crate::name::PackageName;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Members with the packages that clients install together with a package.
const DEPENDENCIES: &str = "dependencies";
const OPTIONAL: &str = "optionalDependencies";
const PEERS: &str = "peerDependencies";
/// Members with the names of the dependencies that are in the archive itself.
const BUNDLED: [&str; 2] = ["bundleDependencies", "bundledDependencies"];

/// Scripts that clients add for files in the package's folder, if the package has no script of that
/// name.
const ADDED: [(&str, &str); 2] = [("install", "node-gyp rebuild"), ("start", "node server.js")];

/// Path prefixes that npm removes before the programs in scripts.
const PROGRAMS: [&str; 3] = ["node_modules/.bin/", "./node_modules/.bin/", ".\\node_modules\\.bin\\"];

/// Git hosts by their short names.
const HOSTS: [(&str, &str); 5] = [
    ("github", "github.com"),
    ("gitlab", "gitlab.com"),
    ("bitbucket", "bitbucket.org"),
    ("gist", "gist.github.com"),
    ("sourcehut", "git.sr.ht"),
];

/// Members by name.
type ManifestMembers = Map<String, Value>;
/// Texts by name.
type Texts = BTreeMap<String, String>;

/// Replaces differing members of the published manifest with the archive's members. Compares only
/// members that decide what clients install and run. Leaves a member unchanged if a client could
/// have made the published value from the archive's `package.json`. Returns the first difference of
/// each replaced member.
pub(crate) fn settle(
    name: &PackageName,
    published: &mut ManifestMembers,
    own: &ManifestMembers,
) -> Vec<Difference> {
    let dependencies = dependencies_differ(published, own);
    if dependencies.is_some() {
        for member in [DEPENDENCIES, OPTIONAL] {
            replace(published, member, requirements_object(own, member));
        }
        for member in BUNDLED {
            replace(published, member, own.get(member).cloned());
        }
    }
    let peers = peers_differ(published, own);
    if peers.is_some() {
        replace(published, PEERS, requirements_object(own, PEERS));
        replace(published, "peerDependenciesMeta", own.get("peerDependenciesMeta").cloned());
    }
    let scripts = scripts_differ(&scripts(published), &scripts(own));
    if scripts.is_some() {
        let scripts = scripts_object(published, own);
        replace(published, "scripts", scripts);
    }
    let bin = bin::differing(name, published, own);
    if bin.is_some() {
        let programs = bin::published(name, own);
        replace(published, "bin", Some(Value::Object(programs)).filter(|bin| bin != &json!({})));
        replace(published, "directories", own.get("directories").cloned());
    }
    [dependencies, peers, scripts, bin].into_iter().flatten().collect()
}

fn replace(published: &mut ManifestMembers, member: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(published.insert(member.to_owned(), value)),
        None => drop(published.remove(member)),
    }
}

/// Returns a member that lists packages, such as `dependencies`, as an object of names and ranges.
/// Converts a list or a text as clients do. Leaves out comments, and ranges that are not texts.
fn requirements_object(own: &ManifestMembers, member: &str) -> Option<Value> {
    let all: ManifestMembers = match own.get(member)? {
        Value::Object(all) => {
            let packages = all.iter().filter(|(name, range)| *name != "//" && range.is_string());
            packages.map(|(name, range)| (name.clone(), range.clone())).collect()
        }
        _ => requirements(own, member).into_iter().map(|(name, text)| (name, Value::String(text))).collect(),
    };
    Some(Value::Object(all))
}

/// Returns the archive's own scripts, and the published scripts that a client adds for files in the
/// package's folder.
fn scripts_object(published: &ManifestMembers, own: &ManifestMembers) -> Option<Value> {
    let texts = |manifest: &ManifestMembers| -> ManifestMembers {
        let all = manifest.get("scripts").and_then(Value::as_object).into_iter().flatten();
        let texts = all.filter(|(_, script)| script.is_string());
        texts.map(|(name, script)| (name.clone(), script.clone())).collect()
    };
    let (mut all, published) = (texts(own), texts(published));
    for (name, text) in ADDED {
        if published.get(name) == Some(&json!(text)) {
            all.entry(name).or_insert_with(|| json!(text));
        }
    }
    Some(Value::Object(all)).filter(|all| all != &json!({}))
}

fn dependencies_differ(published: &ManifestMembers, own: &ManifestMembers) -> Option<Difference> {
    let added = bundled(own);
    let is_bundled = |entry: &str, text: &str| text == "*" && added.contains(entry);
    let nothing = |_: &str, _: &str| false;
    differing(DEPENDENCIES, &required(published), &required(own), is_bundled).or_else(|| {
        differing(OPTIONAL, &requirements(published, OPTIONAL), &requirements(own, OPTIONAL), nothing)
    })
}

fn peers_differ(published: &ManifestMembers, own: &ManifestMembers) -> Option<Difference> {
    differing(PEERS, &requirements(published, PEERS), &requirements(own, PEERS), |_, _| false)
}

/// Returns the first entry that differs between the published manifest and the archive, except
/// entries that clients may add.
fn differing(
    member: &str,
    published: &Texts,
    own: &Texts,
    may_be_added: impl Fn(&str, &str) -> bool,
) -> Option<Difference> {
    let names: BTreeSet<&String> = published.keys().chain(own.keys()).collect();
    let differs = |name: &&&String| match (published.get(**name), own.get(**name)) {
        (Some(text), None) => !may_be_added(name, text),
        (published, own) => published != own,
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
        // Clients also add their script if the package has an empty script of that name.
        if published.get(name).is_some_and(|script| script == text)
            && own.get(name).is_some_and(String::is_empty)
        {
            own.remove(name);
        }
    }
    differing("scripts", published, &own, |name, text| ADDED.contains(&(name, text)))
}

/// Returns the scripts by name, without the path prefix that npm removes. Leaves out scripts that
/// are not texts.
fn scripts(manifest: &ManifestMembers) -> Texts {
    let all = manifest.get("scripts").and_then(Value::as_object).into_iter().flatten();
    let text = |text: &str| {
        let rest = PROGRAMS.iter().find_map(|before| text.strip_prefix(before));
        rest.unwrap_or(text).to_owned()
    };
    all.filter_map(|(name, script)| Some((name.clone(), text(script.as_str()?)))).collect()
}

/// Returns the dependencies without the optional ones, because some clients list the optional ones
/// in both members.
fn required(manifest: &ManifestMembers) -> Texts {
    let optional = requirements(manifest, OPTIONAL);
    let mut all = requirements(manifest, DEPENDENCIES);
    all.retain(|name, _| !optional.contains_key(name));
    all
}

/// Returns the range of each package in a member such as `dependencies`. The member is an object,
/// or in old manifests a list or a text.
fn requirements(manifest: &ManifestMembers, member: &str) -> Texts {
    match manifest.get(member) {
        Some(Value::Object(all)) => {
            // `//` is a comment.
            let packages = all.iter().filter(|(name, _)| *name != "//");
            packages.map(|(name, range)| (name.clone(), range_text(range))).collect()
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

fn range_text(range: &Value) -> String {
    match range {
        Value::String(text) => hosted(text).unwrap_or_else(|| text.clone()),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Parses `name@range` or `name >=range` in a list.
fn listed(text: &str) -> (String, String) {
    let text = text.trim();
    let end = text
        .find(|c: char| c == '@' || c.is_whitespace() || matches!(c, '<' | '>' | '='))
        .unwrap_or(text.len());
    let (name, range) = text.split_at_checked(end).unwrap_or((text, ""));
    let range = range.strip_prefix('@').unwrap_or(range).trim();
    (name.strip_suffix(':').unwrap_or(name).to_owned(), hosted(range).unwrap_or_else(|| range.to_owned()))
}

/// Returns the names of the packages that are in the archive itself.
fn bundled(manifest: &ManifestMembers) -> BTreeSet<String> {
    let bundled = manifest.get("bundleDependencies").filter(|value| !value.is_null());
    match bundled.or_else(|| manifest.get("bundledDependencies")) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Object(all)) => all.keys().cloned().collect(),
        _ => BTreeSet::new(),
    }
}

/// Returns the git repository that a range names, in one spelling such as `github:user/project`.
/// npm accepts several spellings of a repository, and publishes another spelling than the archive
/// has. Returns `None` if the range does not name a repository at a known git host.
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

/// Returns the git host that an address names, and the path on that host.
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
        // The shortest form is a user and a project at GitHub.
        None if address.starts_with(['.', '/', '~', '@']) || address.contains(char::is_whitespace) => None,
        None => Some(("github", address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a published manifest after [`settle`], and the first member that differed.
    fn settled(published: &Value, own: &Value) -> (Value, Option<String>) {
        let members = |value: &Value| value.as_object().cloned().unwrap();
        let mut published = members(published);
        let name = PackageName::new("@s/t").unwrap();
        let found = settle(&name, &mut published, &members(own)).into_iter().next();
        assert_eq!(settle(&name, &mut published, &members(own)), [], "no difference is left, {own}");
        (Value::Object(published), found.map(|found| found.member))
    }

    fn member(published: &Value, own: &Value) -> Option<String> {
        let (after, member) = settled(published, own);
        assert!(member.is_some() || after == *published, "an equal manifest stays unchanged: {after}");
        member
    }

    #[test]
    fn differing_members_are_taken_from_the_archive() {
        for (own, published, expected) in [
            (
                json!({"scripts": {"build": "tsc"}}),
                json!({"scripts": {"build": "tsc", "postinstall": "husky"}, "x": 1}),
                json!({"scripts": {"build": "tsc"}, "x": 1}),
            ),
            (
                json!({"scripts": {"_postinstall": "husky"}}),
                json!({"scripts": {"postinstall": "husky", "install": "node-gyp rebuild"}}),
                json!({"scripts": {"_postinstall": "husky", "install": "node-gyp rebuild"}}),
            ),
            (json!({}), json!({"scripts": {"postinstall": "evil"}}), json!({})),
            (
                json!({"dependencies": {"a": "git+https://me@github.com/u/r.git", "//": "why"}, "optionalDependencies": {"b": "1"}}),
                json!({"dependencies": {"a": "2"}, "bundleDependencies": ["a"]}),
                json!({"dependencies": {"a": "git+https://me@github.com/u/r.git"}, "optionalDependencies": {"b": "1"}}),
            ),
            (json!({"dependencies": ["a@1"]}), json!({}), json!({"dependencies": {"a": "1"}})),
            (
                json!({"peerDependencies": {"p": "1"}, "peerDependenciesMeta": {"p": {"optional": true}}}),
                json!({"peerDependencies": {"p": "2"}}),
                json!({"peerDependencies": {"p": "1"}, "peerDependenciesMeta": {"p": {"optional": true}}}),
            ),
            (json!({"bin": "./cli.js"}), json!({"bin": {"git": "cli.js"}}), json!({"bin": {"t": "cli.js"}})),
            (
                json!({"directories": {"bin": "tools"}}),
                json!({"bin": {"git": "cli.js"}}),
                json!({"directories": {"bin": "tools"}}),
            ),
        ] {
            assert_eq!(settled(&published, &own).0, expected, "{own} / {published}");
        }
    }

    /// Checks the changes that npm 10 and 11, pnpm 10, yarn 1, yarn 4 and bun make.
    #[test]
    fn changes_by_clients_are_not_differences() {
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
    fn other_changes_are_differences() {
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
    fn spellings_of_a_git_host_are_unified() {
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
