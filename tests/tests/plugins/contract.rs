//! The contract parses, is compatible with its releases, and is the only import of the shipped
//! plugins.

use std::path::{Path, PathBuf};

use packhouse_tests::checkout;
use wasmparser::{Parser, Payload};
use wit_parser::{Resolve, UnresolvedPackageGroup, WorldId};

const WORLDS: [&str; 3] = ["imports", "plugin", "plugin-with-upkeep"];
/// Worlds that are newer than the released contract. They allow a component to have further
/// exports.
const NEW_WORLDS: [&str; 4] =
    ["plugin-with-present", "plugin-with-retention", "plugin-with-versions", "plugin-with-all"];

#[test]
fn the_contract_parses_and_has_its_worlds() {
    let mut resolve = Resolve::default();
    let package = push(&mut resolve, &checkout().join("wit/v0.1"), |text| text);
    for world in WORLDS.into_iter().chain(NEW_WORLDS) {
        assert!(resolve.packages[package].worlds.contains_key(world), "{world}");
    }
}

#[test]
fn the_contract_is_compatible_with_its_releases() {
    let released = folders(&checkout().join("wit/released"));
    assert!(!released.is_empty(), "wit/released is empty");
    for folder in released {
        for world in WORLDS {
            compare(&folder, world);
        }
    }
}

fn compare(released: &Path, world: &str) {
    let mut resolve = Resolve::default();
    let before = push(&mut resolve, released, |text| text);
    let before = world_of(&resolve, before, world);
    // The check cannot load two packages with the same name and version. It ignores versions, so
    // the test changes the version of one.
    let now = push(&mut resolve, &checkout().join("wit/v0.1"), |text| text.replace("@0.1.", "@0.1.1000"));
    let now = world_of(&resolve, now, world);
    let checked = wit_component::semver_check(resolve, before, now);
    checked.unwrap_or_else(|error| panic!("{world} is not what {} was: {error:?}", released.display()));
}

#[test]
fn shipped_plugins_import_the_contract_and_nothing_else() {
    let plugins = files(&checkout().join("target/release/plugins"), "wasm");
    assert!(!plugins.is_empty(), "no plugins: build them with `cargo run -p xtask -- plugins`");
    for plugin in plugins {
        let imports = imports(&plugin);
        let foreign: Vec<_> = imports.iter().filter(|name| !name.starts_with("packhouse:format/")).collect();
        assert!(foreign.is_empty(), "{} imports {foreign:?}", plugin.display());
    }
}

/// Returns the names that a component imports, without the imports of nested components and
/// modules.
fn imports(file: &Path) -> Vec<String> {
    let bytes = std::fs::read(file).expect("the plugin can be read");
    let mut imports = Vec::new();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(&bytes) {
        match payload.expect("the plugin is valid") {
            Payload::ComponentSection { .. } | Payload::ModuleSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 0 => {
                let names = section
                    .into_iter()
                    .map(|import| import.expect("the import is valid").name.name.to_owned());
                imports.extend(names);
            }
            _ => {}
        }
    }
    imports
}

fn world_of(resolve: &Resolve, package: wit_parser::PackageId, world: &str) -> WorldId {
    *resolve.packages[package].worlds.get(world).expect("the world exists")
}

/// Adds the package of a folder's `.wit` files. `change` edits each file's text first.
fn push(resolve: &mut Resolve, folder: &Path, change: impl Fn(String) -> String) -> wit_parser::PackageId {
    let mut sources = wit_parser::SourceMap::new();
    for file in files(folder, "wit") {
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        sources.push_str(&file.display().to_string(), change(text));
    }
    let group: UnresolvedPackageGroup = sources.parse().unwrap_or_else(|(_, error)| panic!("{error}"));
    resolve.push_group(group).expect("the package resolves")
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == extension)).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    paths.sort();
    paths
}
