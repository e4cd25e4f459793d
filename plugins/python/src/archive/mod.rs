//! Reads the metadata in a distribution's archive: METADATA of a wheel, PKG-INFO of a source
//! distribution. Refuses decompression bombs, wheels with a wrong RECORD, and archives that two
//! programs could unpack differently.

mod record;
mod tar;

use crate::filename::{FileKind, Filename};
use crate::metadata::{self, CoreMetadata};
use crate::name;
use crate::version::Version;
use packhouse_sdk::{Blob, Error, Failure, VersionDocument};
use packhouse_zip::{Archive, ArchiveError, most};
use record::WheelRecord;

/// Maximum bytes of a wheel's RECORD, which has a line for each file.
const RECORD_LIMIT: u64 = 16 << 20;
/// Maximum bytes of a wheel's WHEEL, which has a few lines.
const WHEEL_LIMIT: u64 = 64 << 10;

/// Maximum number of files in a wheel that the plugin compares with their digests in the RECORD. If
/// the upload is stored in S3, each compared file costs a request.
const COMPARED: usize = 500;
/// Maximum unpacked bytes of all compared files together.
const COMPARED_BYTES: u64 = 4 << 30;

/// Maximum number of bills of materials that the plugin extracts from one wheel.
const SBOMS: usize = 16;
/// Maximum bytes of all bills of materials of one wheel together.
const SBOMS_LIMIT: u64 = 16 << 20;
/// Maximum bytes of the file name of a bill of materials.
const SBOM_NAME: usize = 200;

/// Converts the error into the response for the client that uploaded `file`.
pub(crate) fn failure(error: ArchiveError, file: &str) -> Failure {
    match error {
        ArchiveError::Refused(text) => {
            Failure::new(400, "invalid_distribution", format!("{file} is refused: {text}"))
        }
        ArchiveError::Host(error) => error.into(),
    }
}

/// Contents of a distribution's archive. It is empty if the plugin does not read this kind of
/// archive.
#[derive(Debug, Default)]
pub(crate) struct ArchiveContents {
    pub(crate) metadata: Option<CoreMetadata>,
    /// The unchanged bytes of the metadata. `None` for a wheel whose metadata is not UTF-8, because
    /// installers cannot read it.
    pub(crate) bytes: Option<Vec<u8>>,
    /// A wheel's bills of materials (PEP 770), with their file names.
    pub(crate) sboms: Vec<ArchivedFile>,
}

/// Rules that an archive is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Rules for a new release.
    New,
    /// Rules for a file that was moved from another server. The plugin does not check WHEEL and
    /// RECORD of a wheel, and accepts metadata in Latin-1.
    Moved,
}

/// Reads the metadata and the bills of materials from a file's archive, and checks the archive
/// against `rules`.
pub(crate) fn inspect(
    filename: &Filename,
    blob: &Blob,
    rules: Rules,
) -> Result<ArchiveContents, ArchiveError> {
    let (bytes, sboms) = match filename.kind {
        FileKind::Wheel => wheel(filename, blob, rules)?,
        FileKind::Zip => (zipped_source(blob)?, Vec::new()),
        FileKind::Tar => (tar::package_info(&unpacked(blob)?)?, Vec::new()),
        FileKind::Other(_) => return Ok(ArchiveContents::default()),
    };
    let is_utf8 = core::str::from_utf8(&bytes).is_ok();
    if rules == Rules::New && !is_utf8 {
        return Err(ArchiveError::refused("its metadata is not UTF-8"));
    }
    let metadata = CoreMetadata::parse(&bytes).map_err(ArchiveError::Refused)?;
    let (project, version) = (metadata.project(), metadata.version());
    if project.as_deref() != Some(&filename.project) || version.as_ref() != Some(&filename.version) {
        let stated = [metadata.get("name"), metadata.get("version")].map(Option::unwrap_or_default).join(" ");
        let text =
            format!("its metadata is for {stated:?}, not for {} {}", filename.project, filename.version);
        return Err(ArchiveError::refused(text));
    }
    // The index announces a wheel's metadata to installers, which read it as UTF-8. Metadata in
    // another encoding is therefore not announced.
    let bytes = Some(bytes).filter(|_| is_utf8 || filename.kind != FileKind::Wheel);
    Ok(ArchiveContents { metadata: Some(metadata), bytes, sboms })
}

/// A file in an archive: its name and its bytes.
type ArchivedFile = (String, Vec<u8>);

/// Reads METADATA and the bills of materials of a wheel.
fn wheel(
    filename: &Filename,
    blob: &Blob,
    rules: Rules,
) -> Result<(Vec<u8>, Vec<ArchivedFile>), ArchiveError> {
    let archive = Archive::read(blob)?;
    archive.check_ratio(blob.size()?)?;
    let folder = dist_info(&archive, filename)?;
    let record = match rules {
        Rules::New => Some(checked_record(&archive, blob, &folder)?),
        Rules::Moved => None,
    };
    let metadata = archive.content(blob, &format!("{folder}/METADATA"), metadata::LIMIT)?;
    let sboms = sboms(&archive, blob, &folder)?;
    // The comparison comes last. The host limits the bytes that it unpacks in one call, and the
    // comparison may reach this limit.
    if let Some(record) = record {
        compare(&archive, blob, &record)?;
    }
    Ok((metadata, sboms))
}

/// Reads the RECORD of a wheel. Checks that WHEEL states a supported `Wheel-Version`, and that
/// RECORD lists exactly the wheel's files.
fn checked_record(archive: &Archive, blob: &Blob, folder: &str) -> Result<WheelRecord, ArchiveError> {
    let about = archive.content(blob, &format!("{folder}/WHEEL"), WHEEL_LIMIT)?;
    let of_version_1 =
        |line: &str| line.strip_prefix("Wheel-Version:").is_some_and(|v| v.trim().starts_with("1."));
    if !String::from_utf8_lossy(&about).lines().any(of_version_1) {
        return Err(ArchiveError::refused("its WHEEL does not contain Wheel-Version: 1.x"));
    }
    let lines = archive.content(blob, &format!("{folder}/RECORD"), RECORD_LIMIT)?;
    let record = WheelRecord::read(&lines, folder)?;
    record.check_names(archive.files())?;
    Ok(record)
}

/// Checks that the wheel's files have the digests in its RECORD. Skips files beyond [`COMPARED`]
/// and [`COMPARED_BYTES`], because the host must unpack each compared file.
fn compare(archive: &Archive, blob: &Blob, record: &WheelRecord) -> Result<(), ArchiveError> {
    let mut room = COMPARED_BYTES;
    let stated = archive.members().filter_map(|file| Some((file, record.digest(file.name())?)));
    for (file, stated) in stated.take(COMPARED) {
        if file.size() > room {
            continue;
        }
        room -= file.size();
        let found = file.digest(blob, stated.algorithm)?;
        if found.is_some_and(|found| !stated.is_of(&found)) {
            let (name, algorithm) = (file.name(), stated.algorithm);
            let text = format!("its RECORD has a wrong {algorithm} for its file {name}");
            return Err(ArchiveError::refused(text));
        }
    }
    Ok(())
}

/// Reads the bills of materials in a wheel's folder `sboms`. Skips files of other types and files
/// beyond the bounds. The server does not store them separately from the wheel.
fn sboms(archive: &Archive, blob: &Blob, folder: &str) -> Result<Vec<ArchivedFile>, ArchiveError> {
    let (inside, mut room) = (format!("{folder}/sboms/"), SBOMS_LIMIT);
    let mut found = Vec::new();
    for name in archive.files() {
        let Some(called) = name.strip_prefix(&inside).filter(|called| called.len() <= SBOM_NAME) else {
            continue;
        };
        let size = archive.size_of(name).unwrap_or(u64::MAX);
        if VersionDocument::media_type_of(called).is_none() || size > room || found.len() == SBOMS {
            continue;
        }
        room -= size;
        found.push((called.to_owned(), archive.content(blob, name, size)?));
    }
    Ok(found)
}

/// Returns the name of the wheel's folder `NAME-VERSION.dist-info`. A wheel must have exactly one
/// such folder, with the name and version of the wheel's file name.
fn dist_info(archive: &Archive, filename: &Filename) -> Result<String, ArchiveError> {
    let tops = archive.names().filter_map(|name| name.split_once('/').map(|(top, _)| top));
    let mut folders: Vec<&str> = tops.filter(|top| top.ends_with(".dist-info")).collect();
    folders.sort_unstable();
    folders.dedup();
    let [folder] = folders.as_slice() else {
        return Err(ArchiveError::refused(format!(
            "it must have one folder NAME-VERSION.dist-info, but has {}",
            folders.len()
        )));
    };
    let stem = folder.strip_suffix(".dist-info").unwrap_or_default();
    let of_this = stem.rsplit_once('-').is_some_and(|(project, version)| {
        name::project(project).as_ref() == Some(&filename.project)
            && Version::parse(version).is_some_and(|version| version == filename.version)
    });
    if of_this {
        Ok((*folder).to_owned())
    } else {
        Err(ArchiveError::refused(format!("its folder {folder} belongs to another name or version")))
    }
}

fn zipped_source(blob: &Blob) -> Result<Vec<u8>, ArchiveError> {
    let archive = Archive::read(blob)?;
    archive.check_ratio(blob.size()?)?;
    let top = archive.names().next().and_then(|name| name.split('/').next()).unwrap_or_default().to_owned();
    let inside = |name: &str| name.split_once('/').is_some_and(|(first, _)| first == top);
    if !archive.names().all(inside) {
        return Err(ArchiveError::refused("its files are not all in one folder NAME-VERSION"));
    }
    archive.content(blob, &format!("{top}/PKG-INFO"), metadata::LIMIT)
}

/// Decompresses a `.tar.gz` to the tar.
fn unpacked(blob: &Blob) -> Result<Blob, ArchiveError> {
    match blob.decode("gzip", most(blob.size()?), &[]) {
        Ok(tar) => Ok(tar),
        Err(Error::TooLarge(_)) => Err(ArchiveError::bomb()),
        Err(Error::Invalid(_)) => Err(ArchiveError::refused("it is not compressed with gzip, or is damaged")),
        Err(error) => Err(ArchiveError::Host(error)),
    }
}
