//! Reads Chart.yaml and README.md of a chart's archive. The host unpacks the archive, up to a
//! limit. The plugin reads the tar headers, and then only the content of the file that it needs.

use crate::chart::{CHART_YAML, Chart};
use packhouse_sdk::{Blob, Error, Failure, ReadAt, TarError, TarKind, TarReader, TarRules};

/// The largest unpacked archive, in bytes.
const MAX_UNPACKED: u64 = 256 << 20;
/// The largest ratio of the unpacked size to the packed size.
const MAX_RATIO: u64 = 100;
/// The unpacked size that is allowed at any ratio, in bytes.
const SMALL: u64 = 16 << 20;
/// The most entries of an archive.
const MAX_ENTRIES: u32 = 50_000;
/// The largest extended header, in bytes.
const MAX_HEADER: u64 = 64 << 10;

/// Reads the Chart.yaml in an archive.
///
/// # Errors
/// 400 `invalid_chart` if Helm could not install the chart, or the archive unpacks to too many
/// bytes.
pub(crate) fn chart(file: &Blob) -> Result<Chart, Failure> {
    let archive = unpack(file)?;
    let text = find(&archive, b"Chart.yaml", CHART_YAML).map_err(ArchiveError::into_failure)?;
    let text = text.ok_or_else(|| invalid_chart("It contains no Chart.yaml in its top-level folder"))?;
    Chart::read(&text).map_err(invalid_chart)
}

/// Reads the file `name`, of at most `limit` bytes, in the folder of a chart. Returns `None` if it
/// does not exist.
///
/// # Errors
/// 400 `invalid_chart` if the archive is invalid, or if the file occurs twice or is too large.
pub(crate) fn file(file: &Blob, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
    find(&unpack(file)?, name.as_bytes(), limit).map_err(ArchiveError::into_failure)
}

fn unpack(file: &Blob) -> Result<Blob, Failure> {
    let limit = file.size()?.saturating_mul(MAX_RATIO).clamp(SMALL, MAX_UNPACKED);
    file.decode("gzip", limit, &[]).map_err(|error| match error {
        Error::TooLarge(_) => invalid_chart(format!("It unpacks to more than {limit} bytes")),
        Error::Invalid(_) => invalid_chart("It is not a gzip file, or it is damaged"),
        other => other.into(),
    })
}

/// Creates a 400 with a sentence for the publisher.
pub(crate) fn invalid_chart(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_chart", format!("This is not a valid chart. {}", text.into()))
}

/// The reason why the plugin refuses an archive, or an error of the host.
#[derive(Debug)]
pub(crate) enum ArchiveError {
    Invalid(&'static str),
    Host(Error),
}

impl ArchiveError {
    fn into_failure(self) -> Failure {
        match self {
            Self::Invalid(text) => invalid_chart(text),
            Self::Host(error) => error.into(),
        }
    }
}

impl From<Error> for ArchiveError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<TarError> for ArchiveError {
    fn from(error: TarError) -> Self {
        Self::Invalid(match error {
            TarError::Header | TarError::Extended | TarError::Trailing => {
                "It is not a tar archive, or it is damaged"
            }
            TarError::Size => "A size in it is not a number",
            TarError::TooLarge => "A header in it is larger than 64 KiB",
            TarError::TooMany => "It contains too many headers",
            TarError::Truncated => "It is truncated",
            TarError::Host(error) => return Self::Host(error),
        })
    }
}

/// Returns the content of the file `name` in a top-level folder. Two files of this name are an
/// error, because one program could read the first and another program the second.
pub(crate) fn find(
    archive: &(impl ReadAt + ?Sized),
    name: &[u8],
    limit: u64,
) -> Result<Option<Vec<u8>>, ArchiveError> {
    let mut reader = TarReader::new(archive, TarRules::Lenient, MAX_HEADER)?;
    let mut found = None;
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = reader.next_entry()? else { return Ok(found) };
        if entry.kind == TarKind::Folder || name_in_folder(&entry.path) != Some(name) {
            continue;
        }
        if found.is_some() {
            return Err(ArchiveError::Invalid("It contains the same file twice"));
        }
        if entry.kind != TarKind::File || entry.size > limit {
            return Err(ArchiveError::Invalid("A required file in it is a link or larger than allowed"));
        }
        found = Some(reader.content(&entry)?);
    }
    Err(ArchiveError::Invalid("It contains more than 50,000 entries"))
}

/// Returns the name of a file that is directly in a top-level folder; `None` for any other path.
fn name_in_folder(path: &[u8]) -> Option<&[u8]> {
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let (_, file) = (parts.next()?, parts.next()?);
    parts.next().is_none().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_testkit::tar_archive;
    use proptest::prelude::*;

    #[test]
    fn the_chart_yaml_of_the_top_level_folder_is_found() {
        let sub = ("demo/charts/sub/Chart.yaml", b'0', &b"sub"[..]);
        let own = ("demo/Chart.yaml", b'0', &b"own"[..]);
        let found =
            |entries: &[(&str, u8, &[u8])]| find(tar_archive(entries, 1024).as_slice(), b"Chart.yaml", 10);
        assert_eq!(found(&[sub, own]).unwrap().unwrap(), b"own");
        assert_eq!(found(&[sub]).unwrap(), None);
        assert_eq!(found(&[("./demo//Chart.yaml", b'0', b"own")]).unwrap().unwrap(), b"own");
        assert!(found(&[own, ("other/Chart.yaml", b'0', b"x")]).is_err());
        assert!(found(&[("demo/Chart.yaml", b'0', b"longer than ten")]).is_err());
        assert!(found(&[("demo/Chart.yaml", b'2', b"")]).is_err());
        assert!(find(&b"nonsense"[..], b"Chart.yaml", 10).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            let _ = find(bytes.as_slice(), b"Chart.yaml", 1000);
        }
    }
}
