//! A proxy: its upstream's pages with addresses of its own, and the files, checked against what the pages say of them.
//!
//! A page is fetched and read for each answer, a piece at a time; the host keeps it as fresh as the repository's settings say. Records stand for
//! the files that were fetched: they tell later what the upstream has no longer, and serve a file without its page.

mod html_page;
mod json_page;
mod markup;
mod page;
mod project;
mod url;

use crate::index::{File, Metadata};
use crate::part::{Part, media_type};
use crate::{FILE_LIMIT, attestation, records};
use packhouse_sdk::{
    Context, Digest, Expectation, Failure, Found, Freshness, ReadAt, Release, ReleaseVerdict, Repository,
    Response, Statement, Timestamp, Version, VersionId,
};

use page::Page;
pub(crate) use project::UpstreamProject;

/// Bytes of a file's metadata.
const METADATA: u64 = 16 << 20;
/// Bytes of a file's provenance object.
const PROVENANCE: u64 = 4 << 20;

/// A file, or what goes with it. None where the upstream has none, or it may not be offered.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    version: &str,
    asked: &str,
) -> Result<Option<Response>, Failure> {
    let (filename, part) = Part::of(asked);
    let passed_on = matches!(part, Part::File | Part::Metadata);
    if !passed_on || filename.is_empty() || filename.len() > 400 {
        return Ok(None);
    }
    let offer = Offer { cx, proxy, project, version };
    let known = proxy.get_json::<File>(&records::file(project, filename))?.map(|entry| entry.value);
    if known.as_ref().is_some_and(|file| file.version != version) {
        return Ok(None);
    }
    let known = match known {
        Some(file) if file.withdrawn => proxy.offered(project, vec![file], |file| release(file, true))?.pop(),
        other => other,
    };
    if let Some(file) = known.as_ref().filter(|file| file.checked)
        && let Some(response) = offer.serve(file, part, file.withdrawn)?
    {
        return Ok(Some(response));
    }
    // It was never kept; or it was, and the upstream has it elsewhere now.
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
    file.map_or(Ok(None), |file| offer.serve(&file, part, withdrawn))
}

/// A file as the upstream's page has it.
fn listed(cx: &Context, proxy: &Repository, project: &str, filename: &str) -> Result<Found<File>, Failure> {
    Ok(match Page::find(cx, proxy, project)? {
        Found::There(page) => page.file(cx, project, filename)?.map_or(Found::Nothing, Found::There),
        Found::Nothing => Found::Nothing,
        Found::Refused => Found::Refused,
    })
}

/// What is asked of a proxy's project.
struct Offer<'a> {
    cx: &'a Context,
    proxy: &'a Repository,
    project: &'a str,
    version: &'a str,
}

impl Offer<'_> {
    /// The answer for a file that is in the upstream's page, or `withdrawn` from it; none where it may not be offered.
    fn serve(&self, file: &File, part: Part, withdrawn: bool) -> Result<Option<Response>, Failure> {
        if file.version != self.version {
            return Ok(None);
        }
        // What is signed of a file is stated before it is judged, since a policy may go by it.
        if matches!(part, Part::File | Part::Metadata) {
            state(self.cx, self.proxy, self.project, file)?;
        }
        let verdict = self.proxy.judge_asked(self.project, &release(file, withdrawn))?;
        if verdict != ReleaseVerdict::Offered {
            return Ok(None);
        }
        match part {
            Part::File => {
                if self.proxy.needs_age(self.project)? {
                    // The host judges the fetch by it, and a file's own date may say less than the page.
                    remember_age(self.proxy, self.project, file)?;
                }
                content(self.cx, self.proxy, self.project, file)
            }
            Part::Metadata => metadata(self.cx, self.proxy, self.project, file),
            Part::Signature | Part::Provenance => Ok(None),
        }
    }
}

/// What is known of a file: here each is a release of its own.
fn release(file: &File, withdrawn: bool) -> Release {
    Release::of(&file.version, published(file), withdrawn)
}

/// When a file was published, in ms since 1970; none where that is not told. A time without a zone is in UTC.
fn published(file: &File) -> Option<u64> {
    let text = file.time.as_deref()?;
    let time = Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_rfc3339(&format!("{text}Z")));
    time?.to_ms()
}

/// 502: what the upstream sent makes no sense here.
fn unexpected(what: &str, target: &str) -> Failure {
    Failure::unusable_upstream(format!("{what}, for {target}"))
}

fn content(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    file: &File,
) -> Result<Option<Response>, Failure> {
    let Some(url) = &file.url else { return Ok(None) };
    let path = shown_path(project, file);
    let mut fetch = cx.upstream("GET", url).fresh(Freshness::Immutable).limit(FILE_LIMIT);
    if let Some(digest) = expected(file) {
        fetch = fetch.expect(&digest);
    }
    let reply = fetch.show_as(project, &file.version, &path).start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    if !file.checked {
        // Only what is kept was compared: until then, the page may still be right where it was wrong.
        let checked = reply.header("age")?.is_some();
        remember(proxy, project, &File { checked, ..file.clone() })?;
    }
    Ok(Some(Response::blob(reply.body()?).content_type(media_type(&file.filename)).immutable()))
}

/// The strongest digest that the page gives.
fn expected(file: &File) -> Option<Digest> {
    let known = |name: &str| Digest::new(name, file.hashes.get(name)?).ok();
    ["sha256", "sha512", "sha1", "md5"].into_iter().find_map(known)
}

/// What is known of a file that was fetched. Whoever is faster has remembered the same.
fn remember(proxy: &Repository, project: &str, file: &File) -> Result<(), Failure> {
    let key = records::file(project, &file.filename);
    let before = proxy.get_json::<File>(&key)?;
    if before.as_ref().is_some_and(|entry| entry.value == *file) {
        return Ok(());
    }
    let expected = Expectation::unchanged(before.as_ref());
    let mut change = proxy.begin()?;
    change.put_json(&key, file, expected, &[])?;
    change.show(&shown(project, file));
    let _stale_is_remembered_already = change.commit()?;
    Ok(())
}

/// Shows since when a file's version is there, unless that was done when the file was fetched.
fn remember_age(proxy: &Repository, project: &str, file: &File) -> Result<(), Failure> {
    let key = records::file(project, &file.filename);
    if proxy.get_json::<File>(&key)?.is_some_and(|entry| entry.value.time == file.time) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change.show(&shown(project, file));
    let _nothing_is_expected = change.commit()?;
    Ok(())
}

/// States what is signed of a file, once: the host judges the fetch by that. Where the upstream does not answer, that is no reason not to serve
/// the file, and it is asked the next time. The note of it is apart from that of the file, since a file that is denied is never fetched.
fn state(cx: &Context, proxy: &Repository, project: &str, file: &File) -> Result<(), Failure> {
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
    let path = shown_path(project, file);
    let mut change = proxy.begin()?;
    change.put(&key, sha256.as_bytes(), Expectation::unchanged(before.as_ref()), &[]);
    if !bundles.is_empty() {
        change.show(&shown(project, file));
    }
    for bundle in bundles {
        let statement = Statement::new(id.clone(), Statement::BUNDLE, subject.clone(), bundle);
        change.attest(&statement.of_file(path.as_str()));
    }
    let _stale_is_stated_already = change.commit()?;
    Ok(())
}

/// An upstream's provenance object; empty where it has none, and none where it does not answer.
fn provenance(cx: &Context, proxy: &Repository, address: &str) -> Option<Vec<u8>> {
    let question = cx.upstream("GET", address).header("accept", attestation::MEDIA_TYPE).limit(PROVENANCE);
    let reply = question.metadata().start(proxy).ok()?;
    match reply.status().ok()? {
        200 => reply.body().ok()?.read_all(PROVENANCE).ok(),
        404 | 410 => Some(Vec::new()),
        _ => None,
    }
}

/// The path under which a file is shown.
fn shown_path(project: &str, file: &File) -> String {
    format!("packages/{project}/{}/{}", file.version, file.filename)
}

fn shown(project: &str, file: &File) -> Version {
    Version { published: published(file), ..Version::new(project, &file.version) }
}

fn metadata(
    cx: &Context,
    proxy: &Repository,
    project: &str,
    file: &File,
) -> Result<Option<Response>, Failure> {
    let Some(url) = &file.url else { return Ok(None) };
    let fetch = cx.upstream("GET", &format!("{url}.metadata")).fresh(Freshness::Immutable).limit(METADATA);
    let fetch = match &file.metadata {
        Metadata::Absent => return Ok(None),
        Metadata::Unchecked => fetch,
        Metadata::Sha256(hex) => fetch.expect(&Digest::new("sha256", hex)?),
    };
    let reply = fetch.part_of(project, &file.version, &shown_path(project, file)).start(proxy)?;
    let Some(reply) = reply.found()? else { return Ok(None) };
    Ok(Some(Response::blob(reply.body()?).content_type("text/plain; charset=utf-8").immutable()))
}

#[cfg(test)]
mod tests {
    use super::{File, published};

    #[test]
    fn times_are_read_with_and_without_a_zone() {
        let read = |text: &str| published(&File { time: Some(text.to_owned()), ..File::default() });
        assert_eq!(read("2026-11-21T05:01:40"), Some(1_795_237_300_000));
        assert_eq!(read("2026-11-21T07:01:40+02:00"), Some(1_795_237_300_000));
        for text in ["", "2026-11-21", "2026-13-21T05:01:40Z", "1969-01-01T00:00:00Z", "2026-11-21 05:01:40Z"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
