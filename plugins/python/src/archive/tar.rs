//! Reads one file of a source distribution's tar archive: `NAME-VERSION/PKG-INFO`.

use crate::metadata;
use packhouse_sdk::{ReadAt, TarError, TarKind, TarReader, TarRules};
use packhouse_zip::ArchiveError;

/// Maximum number of entries of an archive.
const MEMBERS: u32 = 200_000;
/// Maximum bytes of a name, including extended headers that replace it.
const NAME: u64 = 16 << 10;

/// Returns the content of `PKG-INFO` in the only top-level folder.
pub(super) fn package_info<R: ReadAt + ?Sized>(bytes: &R) -> Result<Vec<u8>, ArchiveError> {
    let mut reader = TarReader::new(bytes, TarRules::Strict, NAME)?;
    let mut top: Option<String> = None;
    let mut found: Option<Vec<u8>> = None;
    for _ in 0..MEMBERS {
        let Some(member) = reader.next_entry().map_err(damaged)? else {
            return found.ok_or_else(|| ArchiveError::refused("it has no file NAME-VERSION/PKG-INFO"));
        };
        let name = file_name(&member.path)?;
        let (first, rest) = name.split_once('/').unwrap_or((&name, ""));
        let is_folder = member.kind == TarKind::Folder;
        if *top.get_or_insert_with(|| first.to_owned()) != first || (rest.is_empty() && !is_folder) {
            return Err(ArchiveError::refused("its files are not all in one folder NAME-VERSION"));
        }
        if rest != "PKG-INFO" {
            continue;
        }
        if found.is_some() || member.kind != TarKind::File || member.size > metadata::LIMIT {
            return Err(ArchiveError::refused("its PKG-INFO occurs twice, is not a file or is too large"));
        }
        found = Some(reader.content(&member).map_err(damaged)?);
    }
    Err(ArchiveError::refused(format!("it has more than {MEMBERS} members")))
}

/// Checks that every program unpacks this name to the same path. Returns the name without a leading
/// `./`, and without slashes at its end.
fn file_name(path: &[u8]) -> Result<String, ArchiveError> {
    let name = core::str::from_utf8(path).map_err(|_| damaged(TarError::Extended))?;
    let name = name.strip_prefix("./").unwrap_or(name).trim_end_matches('/');
    let harmless = name.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
        && !name.contains(|symbol: char| symbol.is_control() || symbol == '\\');
    if harmless {
        Ok(name.to_owned())
    } else {
        Err(ArchiveError::refused(format!("{name:?} is not a valid file name in an archive")))
    }
}

fn damaged(error: TarError) -> ArchiveError {
    ArchiveError::refused(match error {
        TarError::Header | TarError::Size | TarError::Extended | TarError::TooMany => {
            "the tar archive in it is damaged"
        }
        TarError::TooLarge => "a name in it is too long",
        TarError::Truncated => "it ends too early",
        TarError::Trailing => "it has data after its end",
        TarError::Host(error) => return ArchiveError::Host(error),
    })
}
