//! The zip of a module. All files are below `MODULE@VERSION/`, and a `go.mod` must declare the path
//! MODULE (https://go.dev/ref/mod#zip-files).

use crate::FILE_LIMIT;
use crate::gomod::GoMod;
use crate::module::Module;
use crate::version::Version;
use packhouse_sdk::{Blob, Failure};
use packhouse_zip::{Archive, ArchiveError};
use std::collections::BTreeMap;

/// Maximum bytes of a `go.mod` or a licence. The go command has the same limit.
const SMALL: u64 = 16 << 20;

/// Data from a module's zip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Bytes of the module's `go.mod`. For a module without a `go.mod`, the file that the go
    /// command would generate.
    pub(crate) go_mod: Vec<u8>,
}

/// Reads a zip and checks that the go command would accept it.
///
/// # Errors
/// 400 with the reason.
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
        return Err(bad("it contains a go.mod, so its version must not end with +incompatible"));
    }
    let go_mod = archive.content(blob, &own, SMALL).map_err(refused)?;
    let text = std::str::from_utf8(&go_mod).map_err(|_| bad("its go.mod is not UTF-8"))?;
    let stated = GoMod::read(text).module.unwrap_or_default();
    if stated != module.as_str() {
        return Err(bad(format!("its go.mod declares the module {stated:?}, not {module}")));
    }
    Ok(Contents { go_mod })
}

/// Returns the name and text of the README in the top folder. Returns `None` if the README is
/// missing or unreadable.
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

/// Checks the names of the entries. Every file must be in the folder, and its name must be one that
/// the go command unpacks. No two names may differ only in case.
fn check_names(archive: &Archive, folder: &str) -> Result<(), Failure> {
    // The go command does not unpack folder entries, but includes them in the checksum in go.sum. A
    // check of the unpacked files against go.sum would therefore fail.
    if let Some(entry) = archive.names().find(|name| name.ends_with('/')) {
        let text = format!(
            "it has an entry for the folder {entry}, which makes `go mod verify` fail; pack only files, as `zip -D` does"
        );
        return Err(bad(text));
    }
    let mut folded: BTreeMap<String, &str> = BTreeMap::new();
    for name in archive.files() {
        let Some(inside) = name.strip_prefix(folder) else {
            return Err(bad(format!("its file {name} is not in the folder {folder}")));
        };
        let odd = |symbol: char| "\"'*<>?`|\\:".contains(symbol) || symbol.is_control();
        if let Some(element) =
            inside.split('/').find(|part| part.is_empty() || part.ends_with('.') || part.contains(odd))
        {
            return Err(bad(format!(
                "the go command does not unpack its file {name}, because of the path element {element:?}"
            )));
        }
        if let Some(other) = folded.insert(name.to_lowercase(), name) {
            return Err(bad(format!(
                "its files {other} and {name} collide on file systems that ignore case"
            )));
        }
        let size = archive.size_of(name).unwrap_or_default();
        if matches!(inside, "go.mod" | "LICENSE") && size > SMALL {
            return Err(bad(format!("its file {inside} has more than {SMALL} bytes")));
        }
        let is_other_module = inside.rsplit_once('/').is_some_and(|(_, last)| last == "go.mod");
        if is_other_module {
            return Err(bad(format!("its file {name} starts another module, which is not part of this one")));
        }
        if inside.eq_ignore_ascii_case("go.mod") && inside != "go.mod" {
            return Err(bad(format!("its file {name} must be spelled go.mod")));
        }
    }
    if folded.is_empty() {
        return Err(bad("it contains no files"));
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
