//! The archive in a tarball: finds the `package.json` and the bills of materials. The reader skips
//! the contents of all other files.
//!
//! Installers drop the first folder of every path. If several files then have one path, the last
//! one stays. This module must find the same files. Otherwise the server would check another file
//! than clients install.

use packhouse_sdk::{Error, ReadAt, TarEntry, TarError, TarKind, TarReader, TarRules, VersionDocument};

/// Maximum number of entries of an archive.
const ENTRIES: u32 = 200_000;
/// File name of the package's own manifest.
const PACKAGE_JSON: &[u8] = b"package.json";
/// File name of the lock file that pins a package's dependencies for its users.
const SHRINKWRAP: &[u8] = b"npm-shrinkwrap.json";
/// Maximum number of bytes of a `package.json`, and of an extended header.
const SMALL: u64 = 1 << 20;

/// Maximum number of bills of materials of an archive.
const SBOMS: usize = 16;
/// Maximum number of bytes of the title of a bill of materials.
const SBOM_NAME: usize = 200;

/// Data from an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchiveContents {
    /// The bytes of the package's own `package.json`.
    pub(crate) package_json: Vec<u8>,
    /// The archive's bills of materials.
    pub(crate) sboms: Vec<Sbom>,
    /// Set if the archive has an `npm-shrinkwrap.json`.
    pub(crate) has_shrinkwrap: bool,
    /// Set if the archive has a `*.gyp` file, which clients build when they install the package.
    pub(crate) has_gyp: bool,
}

/// A bill of materials in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sbom {
    /// Path below the package's folder.
    pub(crate) title: String,
    pub(crate) media_type: &'static str,
    /// Offset of the first byte in the archive.
    pub(crate) offset: u64,
    /// Size in bytes.
    pub(crate) size: u64,
}

/// The reason why an archive cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArchiveError {
    /// The archive is invalid, for this reason.
    Bad(&'static str),
    /// An error of the host.
    Host(Error),
}

impl From<TarError> for ArchiveError {
    fn from(error: TarError) -> Self {
        Self::Bad(match error {
            TarError::Header | TarError::Extended | TarError::Trailing => {
                "it is not a tar archive, or it is damaged"
            }
            TarError::Size => "it contains a size that is not a number",
            TarError::TooLarge => "it contains a header that is larger than 1 MiB",
            TarError::TooMany => "it contains too many headers",
            TarError::Truncated => "it is incomplete",
            TarError::Host(error) => return Self::Host(error),
        })
    }
}

impl From<Error> for ArchiveError {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

/// Reads an archive. If several bills of materials have one path, the last one stays.
///
/// # Errors
/// [`ArchiveError::Bad`] if the archive is invalid, has too many entries, or does not have exactly
/// one `package.json`.
pub(crate) fn contents(archive: &impl ReadAt) -> Result<ArchiveContents, ArchiveError> {
    let mut reader = TarReader::new(archive, TarRules::Lenient, SMALL)?;
    let (mut found, mut has_package_json) = (None, false);
    let mut sboms: Vec<Sbom> = Vec::new();
    let (mut has_shrinkwrap, mut has_gyp) = (false, false);
    for _ in 0..ENTRIES {
        let Some(entry) = reader.next_entry()? else {
            let package_json = found.ok_or(ArchiveError::Bad("it does not contain a package.json"))?;
            return Ok(ArchiveContents { package_json, sboms, has_shrinkwrap, has_gyp });
        };
        if let Some(sbom) = sbom(&entry) {
            sboms.retain(|before| before.title != sbom.title);
            if sboms.len() < SBOMS {
                sboms.push(sbom);
            }
        }
        let Some(name) = name_at_first_level(&entry.path) else { continue };
        has_shrinkwrap |= name == SHRINKWRAP && entry.kind == TarKind::File;
        has_gyp |= name.ends_with(b".gyp") && entry.kind == TarKind::File;
        if !name.eq_ignore_ascii_case(PACKAGE_JSON) {
            continue;
        }
        // On many file systems, two names that differ only in their case are one file. Clients
        // could then install either of the two.
        if has_package_json {
            return Err(ArchiveError::Bad("it contains package.json more than once"));
        }
        has_package_json = true;
        if name != PACKAGE_JSON {
            continue;
        }
        if entry.kind != TarKind::File || entry.size > SMALL {
            return Err(ArchiveError::Bad("its package.json is not a file of at most 1 MiB"));
        }
        found = Some(reader.content(&entry)?);
    }
    Err(ArchiveError::Bad("it contains more than 200,000 entries"))
}

/// Returns the bill of materials in an entry; `None` for any other entry. A bill of materials is a
/// file with a matching name in the package's folder, or in its folder `sbom` or `sboms`.
fn sbom(entry: &TarEntry) -> Option<Sbom> {
    let path = std::str::from_utf8(&entry.path).ok()?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let title = match parts.as_slice() {
        [_, file] => (*file).to_owned(),
        [_, folder @ ("sbom" | "sboms"), file] => format!("{folder}/{file}"),
        _ => return None,
    };
    let media_type = VersionDocument::media_type_of(&title)?;
    let fits = entry.kind == TarKind::File && entry.size > 0 && entry.size <= VersionDocument::MAX_BYTES;
    let titled = title.len() <= SBOM_NAME && !title.contains('\0');
    (fits && titled).then(|| Sbom { title, media_type, offset: entry.offset(), size: entry.size })
}

/// Returns the file name of a path that consists of one folder and a file, whatever the folder's
/// name. Installers place such a file at the top level of the package. Returns `None` for other
/// paths.
fn name_at_first_level(path: &[u8]) -> Option<&[u8]> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    match parts.as_slice() {
        [_, file] => Some(file),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_testkit::tar_archive;
    use proptest::prelude::*;

    /// Creates an archive that ends with the usual blocks of zeros.
    fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        tar_archive(entries, 1024)
    }

    fn package_json(archive: &Vec<u8>) -> Result<Vec<u8>, ArchiveError> {
        contents(archive).map(|contents| contents.package_json)
    }

    #[test]
    fn bills_of_materials_are_found_where_installers_would_put_them() {
        let large = vec![b'x'; 600];
        let bytes = archive(&[
            ("package/bom.json", b'0', b"first"),
            ("package/package.json", b'0', b"{}"),
            ("package/sboms/lib.spdx.json", b'0', &large),
            ("package/src/bom.json", b'0', b"no"),
            ("package/link.cdx.json", b'2', b""),
            ("package/empty.cdx.json", b'0', b""),
            ("package/readme.json", b'0', b"no"),
            ("package/bom.json", b'0', b"last"),
        ]);
        let sboms = contents(&bytes).unwrap().sboms;
        let read = |sbom: &Sbom| {
            let offset = usize::try_from(sbom.offset).unwrap();
            bytes[offset..offset + usize::try_from(sbom.size).unwrap()].to_vec()
        };
        let found: Vec<_> = sboms.iter().map(|one| (one.title.as_str(), one.media_type, read(one))).collect();
        assert_eq!(
            found,
            [
                ("sboms/lib.spdx.json", VersionDocument::SPDX_JSON, large),
                ("bom.json", VersionDocument::CYCLONEDX_JSON, b"last".to_vec()),
            ]
        );
    }

    #[test]
    fn shrinkwraps_and_gyp_files_are_found_only_at_the_first_level() {
        let found = |path: &str, kind: u8| {
            let bytes = archive(&[("package/package.json", b'0', b"{}"), (path, kind, b"")]);
            let ArchiveContents { has_shrinkwrap, has_gyp, .. } = contents(&bytes).unwrap();
            (has_shrinkwrap, has_gyp)
        };
        assert_eq!(found("package/npm-shrinkwrap.json", b'0'), (true, false));
        assert_eq!(found("other/binding.gyp", b'0'), (false, true));
        assert_eq!(found("package/lib/npm-shrinkwrap.json", b'0'), (false, false));
        assert_eq!(found("package/npm-shrinkwrap.json", b'2'), (false, false));
        assert_eq!(found("package/package-lock.json", b'0'), (false, false));
    }

    #[test]
    fn the_file_at_the_first_level_is_found_in_any_folder() {
        let long = format!("{}/package.json", "f".repeat(150));
        let pax = format!("{} path={long}\n", long.len() + 10);
        for entries in [
            &[("package/package.json", b'0', &b"{}"[..])][..],
            &[("package/", b'5', b""), ("package/a/package.json", b'0', b"no"), ("x/package.json", 0, b"{}")],
            &[("./package/package.json", b'0', b"{}"), ("package.json", b'0', b"no")],
            &[("pax", b'x', pax.as_bytes()), ("cut", b'0', b"{}")],
            &[("long", b'L', b"package/package.json\0"), ("cut", b'0', b"{}")],
            &[("g", b'g', b"12 comment=x\n"), ("package/package.json", b'0', b"{}")],
        ] {
            assert_eq!(package_json(&archive(entries)), Ok(b"{}".to_vec()), "{entries:?}");
        }
    }

    #[test]
    fn an_ambiguous_or_damaged_archive_is_refused() {
        let two: &[(&str, u8, &[u8])] =
            &[("package/package.json", b'0', b"{}"), ("other/package.json", b'0', b"{}")];
        let case: &[(&str, u8, &[u8])] =
            &[("package/package.json", b'0', b"{}"), ("package/Package.JSON", b'0', b"{}")];
        let link: &[(&str, u8, &[u8])] = &[("package/package.json", b'2', b"")];
        for (bytes, words) in [
            (archive(two), "more than once"),
            (archive(case), "more than once"),
            (archive(link), "not a file"),
            (archive(&[]), "not contain a package.json"),
            (b"not a tar at all".to_vec(), "not a tar"),
            (vec![b'x'; 2048], "not a tar"),
            (archive(two)[..513].to_vec(), "incomplete"),
        ] {
            match package_json(&bytes) {
                Err(ArchiveError::Bad(problem)) => assert!(problem.contains(words), "{problem} / {words}"),
                other => panic!("{words}: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = package_json(&bytes);
        }

        #[test]
        fn any_change_of_an_archive_is_read(at in 0usize..1536, byte in any::<u8>()) {
            let mut bytes = archive(&[("package/package.json", b'0', b"{}")]);
            bytes[at] = byte;
            let _ = package_json(&bytes);
        }
    }
}
