//! A module's zip: all files below `MODULE@VERSION/`, with a `go.mod` that says the same path (https://go.dev/ref/mod#zip-files).

use crate::FILE_LIMIT;
use crate::gomod::GoMod;
use crate::module::Module;
use crate::version::Version;
use packhouse_sdk::{Blob, Failure};
use packhouse_zip::{Archive, ArchiveError};
use std::collections::BTreeMap;

/// Bytes of a `go.mod` and of a licence, as the go command has it.
const SMALL: u64 = 16 << 20;

/// What a zip holds of its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The bytes of its `go.mod`; of a module without one those that the go command makes up.
    pub(crate) go_mod: Vec<u8>,
}

/// Reads a zip and checks that the go command would take it.
///
/// # Errors
/// 400 with what is wrong.
pub(crate) fn read(blob: &Blob, module: &Module, version: &Version) -> Result<Contents, Failure> {
    let archive = Archive::read(blob).map_err(refused)?;
    archive.check_ratio(blob.size()?).map_err(refused)?;
    if archive.unpacked() > FILE_LIMIT {
        return Err(bad(format!("it unpacks to more than {FILE_LIMIT} bytes")));
    }
    let folder = format!("{module}@{version}/");
    check_names(&archive, &folder)?;
    let own = format!("{folder}go.mod");
    if archive.size_of(&own).is_none() {
        return Ok(Contents { go_mod: format!("module {module}\n").into_bytes() });
    }
    if version.is_incompatible() {
        return Err(bad("it holds a go.mod, and so its version is not +incompatible"));
    }
    let go_mod = archive.content(blob, &own, SMALL).map_err(refused)?;
    let text = std::str::from_utf8(&go_mod).map_err(|_| bad("its go.mod is not UTF-8"))?;
    let said = GoMod::read(text).module.unwrap_or_default();
    if said != module.as_str() {
        return Err(bad(format!("its go.mod is that of the module {said:?}, not of {module}")));
    }
    Ok(Contents { go_mod })
}

/// The text of a README at the top; none where there is none, or it cannot be read.
pub(crate) fn readme(
    blob: &Blob,
    module: &Module,
    version: &Version,
    limit: u64,
) -> Option<(String, String)> {
    let archive = Archive::read(blob).ok()?;
    let folder = format!("{module}@{version}/");
    let name = ["README.md", "readme.md", "README", "README.txt", "README.rst"]
        .into_iter()
        .find(|name| archive.size_of(&format!("{folder}{name}")).is_some())?;
    let bytes = archive.content(blob, &format!("{folder}{name}"), limit).ok()?;
    Some((name.to_owned(), String::from_utf8_lossy(&bytes).into_owned()))
}

/// Every file lies in the folder, and no two are one where case does not count.
fn check_names(archive: &Archive, folder: &str) -> Result<(), Failure> {
    // The go command passes them over when it unpacks, and not when it makes the sum that stands in go.sum.
    if let Some(entry) = archive.names().find(|name| name.ends_with('/')) {
        let text = format!(
            "it has an entry for the folder {entry}, by which `go mod verify` would fail; pack files alone, as `zip -D` does"
        );
        return Err(bad(text));
    }
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for name in archive.files() {
        let Some(inside) = name.strip_prefix(folder) else {
            return Err(bad(format!("its file {name} does not lie in {folder}")));
        };
        let odd = |symbol: char| "\"'*<>?`|\\:".contains(symbol) || symbol.is_control();
        if let Some(element) =
            inside.split('/').find(|part| part.is_empty() || part.ends_with('.') || part.contains(odd))
        {
            return Err(bad(format!(
                "its file {name} has the element {element:?}, which the go command does not unpack"
            )));
        }
        if let Some(other) = seen.insert(name.to_lowercase(), name) {
            return Err(bad(format!("its files {other} and {name} are one on many a disk")));
        }
        let size = archive.size_of(name).unwrap_or_default();
        if matches!(inside, "go.mod" | "LICENSE") && size > SMALL {
            return Err(bad(format!("its file {inside} has more than {SMALL} bytes")));
        }
        let is_other_module = inside.rsplit_once('/').is_some_and(|(_, last)| last == "go.mod");
        if is_other_module {
            return Err(bad(format!(
                "its file {name} begins another module, which is not a part of this one"
            )));
        }
        if inside.eq_ignore_ascii_case("go.mod") && inside != "go.mod" {
            return Err(bad(format!("its file {name} is not called go.mod")));
        }
    }
    if seen.is_empty() {
        return Err(bad("it holds no file"));
    }
    Ok(())
}

fn refused(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Refused(text) => bad(text),
        ArchiveError::Host(error) => error.into(),
    }
}

fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_module", format!("This module is refused: {}", text.into()))
}
