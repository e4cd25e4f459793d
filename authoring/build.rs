//! Packs the files that `plugins new` writes into one compressed file: the templates, the contract
//! and the SDK of this checkout, with lock files for the templates. The output is reproducible.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

/// Crates of the SDK that a plugin project gets. The sources of each are in `src`.
const CRATES: [&str; 4] = ["sdk", "sdk/names", "sdk/testkit", "sdk/zip"];
/// Crates of the SDK that a policy project gets.
const POLICY_CRATES: [&str; 1] = ["sdk/policy"];
/// Dependencies of the Rust template. The list is the same as in the template's manifest.
const TEMPLATE_DEPENDENCIES: [&str; 4] = ["packhouse-sdk", "packhouse-testkit", "serde", "serde_json"];
/// Dependencies of the policy template.
const POLICY_TEMPLATE_DEPENDENCIES: [&str; 2] = ["packhouse-policy", "serde"];

type BuildResult<T> = Result<T, Box<dyn Error>>;
/// Contents by path.
type PackedFiles = BTreeMap<String, String>;

fn main() -> BuildResult<()> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let root = here.parent().ok_or("the crate has no parent folder")?;
    let mut files = PackedFiles::new();
    gather(&here.join("templates"), "", &mut files)?;
    gather(&root.join("wit/v0.1"), "contract/wit/v0.1/", &mut files)?;
    let (manifest, locked) = (read(&root.join("Cargo.toml"))?, read(&root.join("Cargo.lock"))?);
    let manifests = crates(root, "sdk", &CRATES, &mut files)?;
    files.retain(|path, _| !path.ends_with("/tests.rs"));
    files.insert("sdk/Cargo.toml".to_owned(), workspace(&manifest, &CRATES, &manifests));
    files.insert("contract/LICENSE".to_owned(), read(&root.join("LICENSE"))?);
    files.insert(
        "rust/Cargo.lock".to_owned(),
        lock(&locked, &manifests, &TEMPLATE_DEPENDENCIES, "format-my-format")?,
    );

    let manifests = crates(root, "policy-sdk", &POLICY_CRATES, &mut files)?;
    gather(&root.join("wit/policy-v0.1"), "policy-sdk/wit/policy-v0.1/", &mut files)?;
    files.insert("policy-sdk/Cargo.toml".to_owned(), workspace(&manifest, &POLICY_CRATES, &manifests));
    files.insert("policy-sdk/LICENSE".to_owned(), read(&root.join("LICENSE"))?);
    files.insert(
        "policy/Cargo.lock".to_owned(),
        lock(&locked, &manifests, &POLICY_TEMPLATE_DEPENDENCIES, "policy-my-policy")?,
    );

    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(&serde_json::to_vec(&files)?)?;
    fs::write(Path::new(&std::env::var("OUT_DIR")?).join("files.json.gz"), packed.finish()?)?;
    Ok(())
}

/// Packs these crates below a folder. Their manifests are packed without dev-dependencies.
fn crates(root: &Path, folder: &str, names: &[&str], files: &mut PackedFiles) -> BuildResult<Vec<String>> {
    let mut manifests = Vec::new();
    for name in names {
        let manifest = without_tests(&read(&root.join(name).join("Cargo.toml"))?);
        gather(&root.join(name).join("src"), &format!("{folder}/{name}/src/"), files)?;
        files.insert(format!("{folder}/{name}/Cargo.toml"), manifest.clone());
        manifests.push(manifest);
    }
    Ok(manifests)
}

/// Reads a text file, and tells cargo to run this script again when the file changes.
fn read(file: &Path) -> BuildResult<String> {
    println!("cargo::rerun-if-changed={}", file.display());
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Packs every file below a folder.
fn gather(folder: &Path, prefix: &str, files: &mut PackedFiles) -> BuildResult<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file name is not UTF-8")?;
        if path.is_dir() {
            gather(&path, &format!("{prefix}{name}/"), files)?;
        } else {
            files.insert(format!("{prefix}{name}"), read(&path)?);
        }
    }
    Ok(())
}

/// Removes the dev-dependencies from a manifest.
fn without_tests(manifest: &str) -> String {
    let mut rest = String::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dev-dependencies]";
        }
        if !inside {
            rest += line;
            rest.push('\n');
        }
    }
    rest
}

/// Builds the workspace manifest of the SDK: the parts of the root's manifest that its crates
/// inherit.
fn workspace(root: &str, crates: &[&str], manifests: &[String]) -> String {
    let required: BTreeSet<&str> = manifests.iter().flat_map(|manifest| inherited(manifest)).collect();
    let members: Vec<String> = crates.iter().map(|name| format!("\"{name}\"")).collect();
    let members = members.join(", ");
    let mut text = format!(
        "# The SDK, written by `packhouse plugins new`. Its version is that of the program.\n[workspace]\nresolver = \"3\"\nmembers = [{members}]\n"
    );
    let mut section = "";
    for line in root.lines() {
        if line.starts_with('[') {
            section = line;
            if is_copied(section) {
                text += &format!("\n{section}\n");
            }
            continue;
        }
        let name = line.split([' ', '=']).next().unwrap_or_default();
        let is_needed = match section {
            "[workspace.dependencies]" => required.contains(name),
            section => is_copied(section) && !line.is_empty(),
        };
        if is_needed {
            text += line;
            text.push('\n');
        }
    }
    text
}

fn is_copied(section: &str) -> bool {
    section == "[workspace.package]"
        || section == "[workspace.dependencies]"
        || section.starts_with("[workspace.lints")
}

/// Names of the dependencies that a manifest inherits from its workspace.
fn inherited(manifest: &str) -> Vec<&str> {
    let depends = |line: &&str| line.contains("workspace = true") && !line.contains(".workspace");
    manifest.lines().filter(depends).filter_map(|line| line.split(' ').next()).collect()
}

/// A package in the lock file.
struct LockedPackage<'a> {
    block: &'a str,
    name: &'a str,
    version: &'a str,
    dependencies: Vec<&'a str>,
}

/// Builds the lock file of a template project from the root's lock file. The project thus gets the
/// versions that this program was tested with. Cargo removes the packages that the project does not
/// need when it rewrites the file.
fn lock(root: &str, manifests: &[String], roots: &[&str], name: &str) -> BuildResult<String> {
    let blocks = root.split("\n[[package]]\n").skip(1);
    let packages: Vec<LockedPackage<'_>> = blocks.filter_map(locked).collect();
    let own: BTreeSet<&str> = manifests.iter().flat_map(|manifest| inherited(manifest)).collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = roots.to_vec();
    while let Some(next) = waiting.pop() {
        let (name, version) = next.split_once(' ').unwrap_or((next, ""));
        let fits =
            |one: &&LockedPackage<'_>| one.name == name && (version.is_empty() || one.version == version);
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
    let own: String = roots.iter().map(|name| format!(" \"{name}\",\n")).collect();
    text += &format!("\n[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\ndependencies = [\n{own}]\n");
    Ok(text)
}

/// Dependencies of a package. For crates of the SDK, dev-dependencies are left out.
fn dependencies<'a>(package: &LockedPackage<'a>, own: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_own = package.name.starts_with("packhouse-");
    let named = |text: &&&str| !is_own || own.contains(text.split(' ').next().unwrap_or_default());
    package.dependencies.iter().filter(named).copied().collect()
}

fn locked(block: &str) -> Option<LockedPackage<'_>> {
    let field = |name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
    };
    let list = block.split_once("dependencies = [\n").map_or("", |(_, list)| list);
    let dependencies =
        list.lines().map_while(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).collect();
    Some(LockedPackage { block, name: field("name")?, version: field("version")?, dependencies })
}
