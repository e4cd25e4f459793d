//! Serves a proxy: the upstream's pages with links to this repository, and the upstream's files,
//! which must match the digests in the pages.
//!
//! The plugin reads the upstream's page in pieces. The host caches the page for as long as the
//! repository's settings say. The plugin stores a record of each file that it fetches. The records
//! later show which files the upstream has removed, and let the plugin serve a file without reading
//! the page.

mod html_page;
mod json_page;
mod markup;
mod page;
mod project;
mod url;

use crate::index::{MetadataFile, ProjectFile};
use crate::part::{FilePart, media_type};
use crate::{FILE_LIMIT, attestation, records};
use packhouse_sdk::{
    Context, Digest, Expectation, Failure, Found, Freshness, ReadAt, Release, ReleaseVerdict, Repository,
    Response, Statement, Timestamp, Version, VersionId,
};

use page::UpstreamPage;
pub(crate) use project::UpstreamProject;

/// Maximum bytes of a file's metadata.
const METADATA: u64 = 16 << 20;
/// Maximum bytes of a file's provenance object.
const PROVENANCE: u64 = 4 << 20;

/// Serves a file or its metadata. Returns `None` if the upstream does not have the file, or if the
/// host does not allow the proxy to offer it.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    version: &str,
    requested: &str,
) -> Result<Option<Response>, Failure> {
    let (filename, part) = FilePart::of(requested);
    let is_served = matches!(part, FilePart::File | FilePart::Metadata);
    if !is_served || filename.is_empty() || filename.len() > 400 {
        return Ok(None);
    }
    let request = FileRequest { cx, proxy, project, version };
    let known = proxy.get_json::<ProjectFile>(&records::file(project, filename))?.map(|entry| entry.value);
    if known.as_ref().is_some_and(|file| file.version != version) {
        return Ok(None);
    }
    let known = match known {
        Some(file) if file.withdrawn => proxy.offered(project, vec![file], |file| release(file, true))?.pop(),
        other => other,
    };
    if let Some(file) = known.as_ref().filter(|file| file.checked)
        && let Some(response) = request.serve(file, part, file.withdrawn)?
    {
        return Ok(Some(response));
    }
    // The file was never verified, or it could not be served from the recorded URL.
    let (file, withdrawn) = match listed(cx, proxy, project, filename) {
        Ok(Found::There(listed)) => (Some(listed), false),
        Ok(Found::Nothing) => (known, true),
        Ok(Found::Refused) => {
            let withdrawn = known.as_ref().is_some_and(|file| file.withdrawn);
            (known, withdrawn)
        }
        Err(failure) => {
            let known = known.ok_or(failure)?;
            let withdrawn = known.withdrawn;
            (Some(known), withdrawn)
        }
    };
    file.map_or(Ok(None), |file| request.serve(&file, part, withdrawn))
}

/// Finds the file in the upstream's page.
fn listed(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    filename: &str,
) -> Result<Found<ProjectFile>, Failure> {
    Ok(match UpstreamPage::find(cx, proxy, project)? {
        Found::There(page) => page.file(cx, project, filename)?.map_or(Found::Nothing, Found::There),
        Found::Nothing => Found::Nothing,
        Found::Refused => Found::Refused,
    })
}

/// The project and version that a request names.
struct FileRequest<'a> {
    cx: &'a Context,
    proxy: &'a Repository,
    project: &'a str,
    version: &'a str,
}

impl FileRequest<'_> {
    /// Serves a file or its metadata. `withdrawn` is true if the upstream's page no longer lists
    /// the file. Returns `None` if the host does not allow the proxy to offer the file.
    fn serve(
        &self,
        file: &ProjectFile,
        part: FilePart,
        withdrawn: bool,
    ) -> Result<Option<Response>, Failure> {
        if file.version != self.version {
            return Ok(None);
        }
        // The attestations are recorded before the host judges the file, because a policy may
        // depend on them.
        if matches!(part, FilePart::File | FilePart::Metadata) {
            record_attestations(self.cx, self.proxy, self.project, file)?;
        }
        let verdict = self.proxy.judge_asked(self.project, &release(file, withdrawn))?;
        if verdict != ReleaseVerdict::Offered {
            return Ok(None);
        }
        match part {
            FilePart::File => {
                if self.proxy.needs_age(self.project)? {
                    // The host judges the age of the file by the recorded time. The time in the
                    // page may be more precise than the date in the response with the file.
                    record_time(self.proxy, self.project, file)?;
                }
                content(self.cx, self.proxy, self.project, file)
            }
            FilePart::Metadata => metadata(self.cx, self.proxy, self.project, file),
            FilePart::Signature | FilePart::Provenance => Ok(None),
        }
    }
}

/// Converts the file into a release, so that the host judges each file on its own.
fn release(file: &ProjectFile, withdrawn: bool) -> Release {
    Release::of(&file.version, published(file), withdrawn)
}

/// Returns the publication time of a file, as Unix time in ms. `None` if the time is unknown. A
/// time without a zone is in UTC.
fn published(file: &ProjectFile) -> Option<u64> {
    let text = file.time.as_deref()?;
    let time = Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}Z")));
    time?.to_ms()
}

/// Creates a 502 for an invalid response of the upstream.
fn unexpected(what: &str, target: &str) -> Failure {
    Failure::unusable_upstream(format!("{what}, for {target}"))
}

fn content(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    file: &ProjectFile,
) -> Result<Option<Response>, Failure> {
    let Some(url) = &file.url else { return Ok(None) };
    let path = listed_path(project, file);
    let mut fetch = cx.upstream("GET", url).fresh(Freshness::Immutable).limit(FILE_LIMIT);
    if let Some(digest) = expected(file) {
        fetch = fetch.expect(&digest);
    }
    let reply = fetch.show_as(project, &file.version, &path).start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    if !file.checked {
        // A response with the header `age` comes from the cache, so the host has verified its
        // bytes. The record stays unchecked until then, because a later page may correct a wrong
        // digest.
        let checked = reply.header("age")?.is_some();
        record_fetched(proxy, project, &ProjectFile { checked, ..file.clone() })?;
    }
    Ok(Some(Response::blob(reply.body()?).content_type(media_type(&file.filename)).immutable()))
}

/// Returns the digest from the page that the fetched file must have. Prefers SHA-256 to other
/// algorithms.
fn expected(file: &ProjectFile) -> Option<Digest> {
    let known = |name: &str| Digest::new(name, file.hashes.get(name)?).ok();
    ["sha256", "sha512", "sha1", "md5"].into_iter().find_map(known)
}

/// Stores the record of a fetched file. If the commit is stale, a concurrent request has recorded
/// the same.
fn record_fetched(proxy: &Repository, project: &str, file: &ProjectFile) -> Result<(), Failure> {
    let key = records::file(project, &file.filename);
    let before = proxy.get_json::<ProjectFile>(&key)?;
    if before.as_ref().is_some_and(|entry| entry.value == *file) {
        return Ok(());
    }
    let expected = Expectation::unchanged(before.as_ref());
    let mut change = proxy.begin()?;
    change.put_json(&key, file, expected, &[])?;
    change.show(&listed_version(project, file));
    let _stale_if_already_recorded = change.commit()?;
    Ok(())
}

/// Adds the file's version, with the publication time, to the package list. Does nothing if the
/// record of the fetched file already has this time.
fn record_time(proxy: &Repository, project: &str, file: &ProjectFile) -> Result<(), Failure> {
    let key = records::file(project, &file.filename);
    if proxy.get_json::<ProjectFile>(&key)?.is_some_and(|entry| entry.value.time == file.time) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.show(&listed_version(project, file));
    let _has_no_expectations = change.commit()?;
    Ok(())
}

/// Records the upstream's attestations of a file, because a policy may depend on them. If the
/// request for the attestations fails, the proxy still serves the file, and the next request for
/// the file tries again. After a success, a separate record prevents further requests. The file
/// record cannot do this, because a denied file is never fetched and so has no file record.
fn record_attestations(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    file: &ProjectFile,
) -> Result<(), Failure> {
    let (Some(address), Some(sha256)) = (&file.provenance_url, file.hashes.get("sha256")) else {
        return Ok(());
    };
    let key = records::stated(project, &file.filename);
    let before = proxy.get(&key)?;
    if before.as_ref().is_some_and(|entry| entry.value == sha256.as_bytes()) {
        return Ok(());
    }
    let Some(answer) = provenance(cx, proxy, address) else { return Ok(()) };
    let (id, subject) = (VersionId::new(project, &file.version), Digest::new("sha256", sha256)?);
    let bundles = attestation::of_upstream(&answer, &file.filename, sha256);
    let path = listed_path(project, file);
    let mut change = proxy.begin()?;
    change.put(&key, sha256.as_bytes(), Expectation::unchanged(before.as_ref()), &[]);
    if !bundles.is_empty() {
        change.show(&listed_version(project, file));
    }
    for bundle in bundles {
        let statement = Statement::new(id.clone(), Statement::BUNDLE, subject.clone(), bundle);
        change.attest(&statement.of_file(path.as_str()));
    }
    let _stale_if_already_recorded = change.commit()?;
    Ok(())
}

/// Fetches an upstream's provenance object. Returns an empty list of bytes if the upstream does not
/// have the object, and `None` if the request fails.
fn provenance(cx: &Context, proxy: &Repository, address: &str) -> Option<Vec<u8>> {
    let fetch = cx.upstream("GET", address).header("accept", attestation::MEDIA_TYPE).limit(PROVENANCE);
    let reply = fetch.metadata().start(proxy).ok()?;
    match reply.status().ok()? {
        200 => reply.body().ok()?.read_all(PROVENANCE).ok(),
        404 | 410 => Some(Vec::new()),
        _ => None,
    }
}

/// Returns the file's path in the package list.
fn listed_path(project: &str, file: &ProjectFile) -> String {
    format!("packages/{project}/{}/{}", file.version, file.filename)
}

fn listed_version(project: &str, file: &ProjectFile) -> Version {
    Version { published: published(file), ..Version::new(project, &file.version) }
}

fn metadata(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    file: &ProjectFile,
) -> Result<Option<Response>, Failure> {
    let Some(url) = &file.url else { return Ok(None) };
    let fetch = cx.upstream("GET", &format!("{url}.metadata")).fresh(Freshness::Immutable).limit(METADATA);
    let fetch = match &file.metadata {
        MetadataFile::Absent => return Ok(None),
        MetadataFile::Unchecked => fetch,
        MetadataFile::Sha256(hex) => fetch.expect(&Digest::new("sha256", hex)?),
    };
    let reply = fetch.part_of(project, &file.version, &listed_path(project, file)).start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    Ok(Some(Response::blob(reply.body()?).content_type("text/plain; charset=utf-8").immutable()))
}

#[cfg(test)]
mod tests {
    use super::{ProjectFile, published};

    #[test]
    fn times_are_read_with_and_without_a_zone() {
        let read =
            |text: &str| published(&ProjectFile { time: Some(text.to_owned()), ..ProjectFile::default() });
        assert_eq!(read("2026-11-21T05:01:40"), Some(1_795_237_300_000));
        assert_eq!(read("2026-11-21T07:01:40+02:00"), Some(1_795_237_300_000));
        for text in ["", "2026-11-21", "2026-13-21T05:01:40Z", "1969-01-01T00:00:00Z", "2026-11-21 05:01:40Z"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
