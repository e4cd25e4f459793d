//! Plugin projects. They are written from the templates, and built with the author's own tools.

use crate::compile::{self, Crates};
use crate::toolchain::{self, Toolchain};
use crate::{Language, component, files, scripts};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Placeholders in the templates for the name of the format or policy.
const NAMES: [&str; 2] = ["my-format", "my-policy"];

/// Writes a project for a format of this name into a new folder below `into`. Returns the folder.
///
/// # Errors
/// Fails if the name is not allowed for a format, or if the folder already exists.
pub fn write(name: &str, language: Language, into: &Path) -> Result<PathBuf> {
    let packed: &[&str] = if language == Language::Rust { &["contract", "sdk"] } else { &["contract"] };
    write_of(name, language.name(), packed, into)
}

/// Writes a project for a policy of this name in Rust, like [`write`].
///
/// # Errors
/// The same as for [`write`].
pub fn write_policy(name: &str, into: &Path) -> Result<PathBuf> {
    write_of(name, "policy", &["policy-sdk"], into)
}

/// Writes a project from this template, with these packed folders below `packhouse`.
fn write_of(name: &str, template: &str, packed: &[&str], into: &Path) -> Result<PathBuf> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ensure!(
        (1..=32).contains(&name.len()) && name.bytes().all(allowed),
        "the name must have 1 to 32 lower-case letters, digits and `-`; {name:?} is not allowed"
    );
    // Tools would treat a name with a leading dash as an option.
    ensure!(!name.starts_with('-'), "the name must begin with a letter or a digit; {name:?} is not allowed");
    let folder = into.join(name);
    let failed = || format!("failed to write the project to {}", folder.display());
    fs::create_dir_all(into).with_context(failed)?;
    match fs::create_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => bail!(
            "{} already exists and was not changed: choose another name, or another folder with --into",
            folder.display()
        ),
        made => made.with_context(failed)?,
    }
    let mut unpacked: Vec<(String, String)> = Vec::new();
    for (path, text) in files::below(template)? {
        unpacked.push((placed(path), named(&text, name)));
    }
    for part in packed {
        let below = |(path, text)| (format!("packhouse/{path}"), text);
        unpacked.extend(files::below(part)?.into_iter().map(below));
    }
    for (path, text) in unpacked {
        let file = folder.join(path);
        let parent = file.parent().context("a file has no parent folder")?;
        fs::create_dir_all(parent).and_then(|()| fs::write(&file, text)).with_context(failed)?;
    }
    folder.canonicalize().with_context(failed)
}

/// The path of a template's file in a project. Some files have another path in the folder of
/// templates, because their real path would have an effect in this repository.
fn placed(path: String) -> String {
    match path.as_str() {
        "gitignore" => ".gitignore".to_owned(),
        "packhouse-world" => "packhouse/world".to_owned(),
        _ => path,
    }
}

/// Replaces the placeholders in a template's text by this name.
fn named(text: &str, name: &str) -> String {
    NAMES.iter().fold(text.to_owned(), |text, known| {
        text.replace(&known.replace('-', "_"), &name.replace('-', "_")).replace(known, name)
    })
}

/// Builds the component of the project in `folder` with the installed tools. Writes it to `out`, by
/// default to `target/FOLDER.wasm` in the project, and returns the file. The compiler's messages go
/// to standard error.
///
/// # Errors
/// Fails if the project does not build, or if a tool is missing. For a missing tool, the error says
/// how to install it.
pub fn build(folder: &Path, out: Option<&Path>) -> Result<PathBuf> {
    let language = Language::of(folder)?;
    let folder = folder.canonicalize().with_context(|| format!("failed to find {}", folder.display()))?;
    let name = folder.file_name().context("the root folder cannot be a project")?;
    let usual = folder.join("target").join(name).with_added_extension("wasm");
    let file = std::path::absolute(out.unwrap_or(&usual))?;
    match language {
        Language::Rust => rust(&folder, &file)?,
        Language::Python => interpreted(&folder, &file, scripts::python)?,
        Language::JavaScript => interpreted(&folder, &file, scripts::javascript)?,
    }
    Ok(file)
}

/// Runs the tests of a Rust project, without Wasm. The tests write the tables that they run to the
/// folder `tables`. Does nothing for other languages.
///
/// # Errors
/// Fails if a test fails. The output of the tests goes to standard output.
pub fn own_tests(folder: &Path, tables: &Path) -> Result<()> {
    match Language::of(folder)? {
        Language::Rust => {
            let mut command = toolchain::cargo_test();
            command.current_dir(folder).env("PACKHOUSE_KEEP_TABLES", tables);
            let status = command.status().context("failed to start cargo")?;
            ensure!(status.success(), "the project's own tests failed: see their output above");
            Ok(())
        }
        // Such tests need a simulated host, which exists only for Rust.
        Language::Python | Language::JavaScript => Ok(()),
    }
}

/// Builds the component with a language's own tool.
fn interpreted(folder: &Path, file: &Path, tool: impl FnOnce(&Path, &Path) -> Result<Command>) -> Result<()> {
    let parent = file.parent().context("the output file has no parent folder")?;
    fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    let part = file.with_extension("part");
    scripts::run(tool(folder, &part)?)?;
    component::put(&part, file).map(drop)
}

fn rust(folder: &Path, file: &Path) -> Result<()> {
    let toolchain = Toolchain::find(folder)?;
    let arguments = vec!["--release".into()];
    let crates = Crates { folder: folder.to_owned(), name: "/plugin", arguments };
    let modules = compile::run(&toolchain, &crates)?;
    match modules.as_slice() {
        [module] => component::encode(&module.path, file)
            .map(drop)
            .with_context(|| format!("failed to create a component from {}", module.path.display())),
        [] => bail!(
            "cargo built no module: Cargo.toml must have `crate-type = [\"cdylib\", \"rlib\"]` under [lib]"
        ),
        several => {
            let names: Vec<&str> = several.iter().map(|module| module.name.as_str()).collect();
            bail!("cargo built several modules ({}): pass the folder of one of them", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_the_formats_name_everywhere() {
        let home = tempfile::tempdir().unwrap();
        let folder = write("of-mine-2", Language::Rust, home.path()).unwrap();
        assert_eq!(folder, home.path().canonicalize().unwrap().join("of-mine-2"));
        let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
        assert!(read("Cargo.toml").contains("name = \"format-of-mine-2\""));
        assert!(read("Cargo.lock").contains("name = \"format-of-mine-2\""));
        assert!(read("src/lib.rs").contains("\"of-mine-2\""));
        assert!(read("tests/protocol.rs").contains("use format_of_mine_2::Plugin;"));
        assert!(read("packhouse/wit/v0.1/format.wit").contains("interface format"));
        assert_eq!(read(".gitignore"), "/target\n/data\n");
        assert!(!folder.join("gitignore").exists());
    }

    #[test]
    fn a_policy_project_has_only_the_policy_sdk_and_contract() {
        let home = tempfile::tempdir().unwrap();
        let folder = write_policy("no-friday", home.path()).unwrap();
        let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
        assert!(read("Cargo.toml").contains("name = \"policy-no-friday\""));
        assert!(read("Cargo.lock").contains("name = \"policy-no-friday\""));
        assert!(read("src/lib.rs").contains("\"no-friday\""));
        assert!(read("packhouse/wit/policy-v0.1/policy.wit").contains("interface policy"));
        assert!(read("packhouse/sdk/policy/src/lib.rs").contains("pub trait Policy"));
        assert!(!folder.join("packhouse/sdk/src").exists());
        assert_eq!(Language::of(&folder).unwrap(), Language::Rust);
    }

    #[test]
    fn projects_in_other_languages_have_the_contract_and_no_sdk() {
        let home = tempfile::tempdir().unwrap();
        for (language, source) in [(Language::Python, "app.py"), (Language::JavaScript, "app.js")] {
            let folder = write(language.name(), language, home.path()).unwrap();
            let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
            assert!(read(source).contains(&format!("\"{}\"", language.name())));
            assert_eq!(read("packhouse/world"), "plugin\n");
            assert!(folder.join("packhouse/wit/v0.1/http.wit").is_file());
            assert!(folder.join("tests/tables/protocol.json").is_file());
            assert!(!folder.join("packhouse/sdk").exists());
            assert_eq!(Language::of(&folder).unwrap(), language);
        }
    }

    #[test]
    fn an_existing_folder_is_not_overwritten() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("mine")).unwrap();
        let error = write("mine", Language::Rust, home.path()).unwrap_err().to_string();
        assert!(error.contains("already exists"), "{error}");
        assert_eq!(fs::read_dir(home.path().join("mine")).unwrap().count(), 0);
    }

    #[test]
    fn invalid_names_are_refused() {
        let home = tempfile::tempdir().unwrap();
        for name in ["", "Mine", "a_b", "a/b", "..", "-x", "ä", &"x".repeat(33)] {
            assert!(write(name, Language::Rust, home.path()).is_err(), "{name:?}");
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_without_a_project_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let error = build(home.path(), None).unwrap_err().to_string();
        assert!(error.contains("`packhouse plugins new NAME` writes one"), "{error}");
    }
}
