//! Packs what `plugins new` writes into one compressed file: the templates, the contract and the SDK as they are in this checkout, with
//! the versions of their dependencies. The same sources make the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

/// What an author's project gets of the SDK: each a crate whose sources lie in `src`.
const CRATES: [&str; 4] = ["sdk", "sdk/names", "sdk/testkit", "sdk/zip"];
/// The same of a policy's.
const POLICY_CRATES: [&str; 1] = ["sdk/policy"];
/// What the template of a Rust project asks for itself; its manifest names the same.
const WANTED: [&str; 4] = ["packhouse-sdk", "packhouse-testkit", "serde", "serde_json"];
/// The same of a policy's.
const POLICY_WANTED: [&str; 2] = ["packhouse-policy", "serde"];

type Outcome<T> = Result<T, Box<dyn Error>>;
/// Contents by path.
type Files = BTreeMap<String, String>;

fn main() -> Outcome<()> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let root = here.parent().ok_or("the crate lies in the repository")?;
    let mut files = Files::new();
    gather(&here.join("templates"), "", &mut files)?;
    gather(&root.join("wit/v0.1"), "contract/wit/v0.1/", &mut files)?;
    let (manifest, locked) = (read(&root.join("Cargo.toml"))?, read(&root.join("Cargo.lock"))?);
    let manifests = crates(root, "sdk", &CRATES, &mut files)?;
    files.retain(|path, _| !path.ends_with("/tests.rs"));
    files.insert("sdk/Cargo.toml".to_owned(), workspace(&manifest, &CRATES, &manifests));
    files.insert("contract/LICENSE".to_owned(), read(&root.join("LICENSE"))?);
    files.insert("rust/Cargo.lock".to_owned(), lock(&locked, &manifests, &WANTED, "format-my-format")?);

    let manifests = crates(root, "policy-sdk", &POLICY_CRATES, &mut files)?;
    gather(&root.join("wit/policy-v0.1"), "policy-sdk/wit/policy-v0.1/", &mut files)?;
    files.insert("policy-sdk/Cargo.toml".to_owned(), workspace(&manifest, &POLICY_CRATES, &manifests));
    files.insert("policy-sdk/LICENSE".to_owned(), read(&root.join("LICENSE"))?);
    files.insert(
        "policy/Cargo.lock".to_owned(),
        lock(&locked, &manifests, &POLICY_WANTED, "policy-my-policy")?,
    );

    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(&serde_json::to_vec(&files)?)?;
    fs::write(Path::new(&std::env::var("OUT_DIR")?).join("files.json.gz"), packed.finish()?)?;
    Ok(())
}

/// Packs these crates below a folder; their manifests without what only their tests need.
fn crates(root: &Path, folder: &str, names: &[&str], files: &mut Files) -> Outcome<Vec<String>> {
    let mut manifests = Vec::new();
    for name in names {
        let manifest = without_tests(&read(&root.join(name).join("Cargo.toml"))?);
        gather(&root.join(name).join("src"), &format!("{folder}/{name}/src/"), files)?;
        files.insert(format!("{folder}/{name}/Cargo.toml"), manifest.clone());
        manifests.push(manifest);
    }
    Ok(manifests)
}

/// A text file, on which this depends.
fn read(file: &Path) -> Outcome<String> {
    println!("cargo::rerun-if-changed={}", file.display());
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Every file below a folder.
fn gather(folder: &Path, prefix: &str, files: &mut Files) -> Outcome<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a name that is no text")?;
        if path.is_dir() {
            gather(&path, &format!("{prefix}{name}/"), files)?;
        } else {
            files.insert(format!("{prefix}{name}"), read(&path)?);
        }
    }
    Ok(())
}

/// A manifest without what only the crate's own tests need.
fn without_tests(manifest: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dev-dependencies]";
        }
        if !inside {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// The workspace of the SDK's crates: the root's, as far as they ask it for something.
fn workspace(root: &str, crates: &[&str], manifests: &[String]) -> String {
    let asked: BTreeSet<&str> = manifests.iter().flat_map(|manifest| inherited(manifest)).collect();
    let members: Vec<String> = crates.iter().map(|name| format!("\"{name}\"")).collect();
    let members = members.join(", ");
    let mut text = format!(
        "# The SDK as `packhouse plugins new` wrote it: as of the program that wrote it.\n[workspace]\nresolver = \"3\"\nmembers = [{members}]\n"
    );
    let mut section = "";
    for line in root.lines() {
        if line.starts_with('[') {
            section = line;
            if kept(section) {
                text += &format!("\n{section}\n");
            }
            continue;
        }
        let name = line.split([' ', '=']).next().unwrap_or_default();
        let wanted = match section {
            "[workspace.dependencies]" => asked.contains(name),
            section => kept(section) && !line.is_empty(),
        };
        if wanted {
            text += line;
            text.push('\n');
        }
    }
    text
}

fn kept(section: &str) -> bool {
    section == "[workspace.package]"
        || section == "[workspace.dependencies]"
        || section.starts_with("[workspace.lints")
}

/// What a manifest takes over from its workspace's dependencies.
fn inherited(manifest: &str) -> Vec<&str> {
    let depends = |line: &&str| line.contains("workspace = true") && !line.contains(".workspace");
    manifest.lines().filter(depends).filter_map(|line| line.split(' ').next()).collect()
}

/// What the lock file says of one package.
struct Locked<'a> {
    block: &'a str,
    name: &'a str,
    version: &'a str,
    dependencies: Vec<&'a str>,
}

/// The root's lock file with what a project of the template may need, under which cargo finds the versions that this program was
/// tested with. What it turns out not to need cargo leaves out when it writes the file anew.
fn lock(root: &str, manifests: &[String], wanted: &[&str], name: &str) -> Outcome<String> {
    let blocks = root.split("\n[[package]]\n").skip(1);
    let packages: Vec<Locked<'_>> = blocks.filter_map(locked).collect();
    let own: BTreeSet<&str> = manifests.iter().flat_map(|manifest| inherited(manifest)).collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = wanted.to_vec();
    while let Some(next) = waiting.pop() {
        let (name, version) = next.split_once(' ').unwrap_or((next, ""));
        let fits = |one: &&Locked<'_>| one.name == name && (version.is_empty() || one.version == version);
        let found = packages.iter().find(fits).ok_or_else(|| format!("Cargo.lock has no {next}"))?;
        if !reached.insert((found.name, found.version)) {
            continue;
        }
        waiting.extend(dependencies(found, &own));
    }
    let mut text = "version = 4\n".to_owned();
    for package in packages.iter().filter(|package| reached.contains(&(package.name, package.version))) {
        text += "\n[[package]]\n";
        let head = package.block.split("\ndependencies = [").next().unwrap_or_default();
        text += head.trim_end();
        text.push('\n');
        let list: Vec<String> =
            dependencies(package, &own).iter().map(|dependency| format!(" \"{dependency}\",\n")).collect();
        if !list.is_empty() {
            text += &format!("dependencies = [\n{}]\n", list.concat());
        }
    }
    let own: String = wanted.iter().map(|name| format!(" \"{name}\",\n")).collect();
    text += &format!("\n[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\ndependencies = [\n{own}]\n");
    Ok(text)
}

/// What a package needs; of the SDK's crates without what their own tests need.
fn dependencies<'a>(package: &Locked<'a>, own: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_own = package.name.starts_with("packhouse-");
    let named = |text: &&&str| !is_own || own.contains(text.split(' ').next().unwrap_or_default());
    package.dependencies.iter().filter(named).copied().collect()
}

fn locked(block: &str) -> Option<Locked<'_>> {
    let field = |name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
    };
    let list = block.split_once("dependencies = [\n").map_or("", |(_, list)| list);
    let dependencies =
        list.lines().map_while(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).collect();
    Some(Locked { block, name: field("name")?, version: field("version")?, dependencies })
}
