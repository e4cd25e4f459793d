//! The documents of the compact index.

use crate::compact;
use crate::gems;
use crate::name;
use crate::proxy::{self, VersionLines};
use crate::records;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{
    Blob, Content, Context, Error, Failure, Intent, Params, Repository, Request, Response, Writer,
};
use std::collections::BTreeSet;

/// Bytes that [`Lines`] collects before it passes them to the host.
const PIECE: usize = 256 << 10;

pub(crate) fn plan_many(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages())
}

pub(crate) fn plan_info(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let gem = params.segment("name");
    let intent = Intent::read().subject(gem);
    Ok(if name::is_name(gem) { intent.about_package(gem) } else { intent })
}

/// Handles `GET` of the repository's address. `gem` sends this request to find out whether there is
/// a compact index.
pub(crate) fn root(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(Response::text(format!("A gem repository: gem install NAME --source {}/\n", request.address())))
}

/// Handles `GET /info/NAME`.
pub(crate) fn info(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let gem = params.segment("name");
    let missing = || Failure::not_found(format!("There is no gem {gem} in this repository"));
    if !name::is_name(gem) {
        return Err(missing());
    }
    let hosted = gems::hosted(cx, &records::versions(gem))?;
    if hosted.iter().any(|record| record.yanked.is_none()) {
        return document(request, cx.write_blob(compact::info(&hosted).as_bytes())?);
    }
    let mut left_out = cx.left_out();
    for proxy in cx.proxies()? {
        if let Some(offered) = left_out.unless_failed(proxy, proxy::offered(cx, proxy, gem))? {
            return document(request, cx.write_blob(compact::render_info(&offered).as_bytes())?);
        }
    }
    left_out.or_failure(None)?.ok_or_else(missing)
}

/// Handles `GET /versions`.
pub(crate) fn versions(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let hosted = gems::hosted(cx, records::GEMS)?;
    let mut known: BTreeSet<String> = hosted.iter().map(|record| record.spec.name.clone()).collect();
    let mut out = Lines { writer: cx.writer(), buffer: compact::versions(hosted) };
    each_upstream_line(cx, &mut known, &mut |line, _| out.push(line))?;
    document(request, out.finish()?)
}

/// Handles `GET /names`.
pub(crate) fn names(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let hosted = gems::hosted(cx, records::GEMS)?;
    let mut known: BTreeSet<String> =
        hosted.into_iter().filter(|record| record.yanked.is_none()).map(|record| record.spec.name).collect();
    let mut upstream = BTreeSet::new();
    each_upstream_line(cx, &mut known.clone(), &mut |_, name| {
        if !upstream.contains(name) {
            upstream.insert(name.to_owned());
        }
        Ok(())
    })?;
    known.append(&mut upstream);
    let mut out = Lines { writer: cx.writer(), buffer: "---\n".to_owned() };
    for name in &known {
        out.push(name)?;
    }
    document(request, out.finish()?)
}

/// Calls `each` with each line of the proxies' `versions` and the line's gem name. Skips a gem in
/// `known`, a gem of an earlier proxy, and a gem that must not come from an upstream.
///
/// # Errors
/// 404 if no repository has an index.
pub(crate) fn each_upstream_line(
    cx: &Context,
    known: &mut BTreeSet<String>,
    each: &mut dyn FnMut(&str, &str) -> Result<(), Error>,
) -> Result<(), Failure> {
    let (proxies, mut left_out) = (cx.proxies()?, cx.left_out());
    let mut has_index = proxies.is_empty() || !cx.hosted()?.is_empty();
    for (at, proxy) in proxies.iter().enumerate() {
        // The names of a proxy's gems are needed only to skip these gems in a later proxy. They are
        // therefore not collected for the last proxy.
        let names = upstream_lines(cx, proxy, known, at + 1 < proxies.len(), each);
        if let Some(mut names) = left_out.unless_failed(proxy, names)? {
            has_index = true;
            known.append(&mut names);
        }
    }
    let missing = || Failure::not_found("There is no index of gems in this repository");
    left_out.or_failure(has_index.then_some(()))?.ok_or_else(missing)
}

/// Calls `each` with the lines of one proxy. Returns the names of its gems if `collect_names` is
/// true, and otherwise an empty set. Returns `None` if the proxy has no index.
fn upstream_lines(
    cx: &Context,
    proxy: &Repository,
    known: &BTreeSet<String>,
    collect_names: bool,
    each: &mut dyn FnMut(&str, &str) -> Result<(), Error>,
) -> Result<Option<BTreeSet<String>>, Failure> {
    let Some(mut lines) = VersionLines::open(cx, proxy)? else { return Ok(None) };
    let (mut new_names, mut left_out) = (BTreeSet::new(), 0);
    while let Some(page) = lines.page()? {
        let read = page.iter().filter_map(|line| Some((line.as_str(), compact::read_versions_line(line)?.0)));
        let mut read: Vec<(&str, &str)> = read.collect();
        left_out += page.len() - read.len();
        read.retain(|(_, name)| !known.contains(*name));
        let names: BTreeSet<String> = read.iter().map(|(_, name)| (*name).to_owned()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let withheld = proxy.withheld(&names)?;
        for (line, name) in read.into_iter().filter(|(_, name)| !withheld.contains(*name)) {
            each(line, name)?;
        }
        if collect_names {
            new_names.extend(names);
        }
    }
    // An unreadable line has no readable gem name, so the log line names no package.
    cx.log().left_out("", "versions", left_out);
    Ok(Some(new_names))
}

/// A writer of lines to a blob, with a buffer.
struct Lines {
    writer: Writer,
    buffer: String,
}

impl Lines {
    fn push(&mut self, line: &str) -> Result<(), Error> {
        self.buffer.push_str(line);
        self.buffer.push('\n');
        if self.buffer.len() > PIECE {
            self.writer.write(self.buffer.as_bytes())?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Blob, Error> {
        self.writer.write(self.buffer.as_bytes())?;
        self.writer.finish()
    }
}

/// Builds the response with a document of the compact index. The headers contain the digest of the
/// whole document, because Bundler appends the new part to its old copy and then verifies the
/// result.
///
/// Bundler before 2.5 compares `ETag` with the MD5 of the document, and fails if they differ. The
/// host's `ETag` is not an MD5, so an old Bundler receives status 203, for which the host sends no
/// `ETag`. An old Bundler also sends the MD5 of its copy as `If-None-Match`. If this is the
/// document's MD5, the response is 304.
fn document(request: &Request, blob: Blob) -> Result<Response, Failure> {
    let old = request.header("user-agent").is_some_and(is_old_bundler);
    if old && let Some(tag) = request.header("if-none-match") {
        let md5 = blob.digest("md5")?;
        if tag.trim_start_matches("W/").trim_matches('"') == md5.hex() {
            return Ok(Response::status(304));
        }
    }
    let digest = STANDARD.encode(blob.sha256()?.bytes());
    let response =
        Response::ok().content_type("text/plain; charset=utf-8").revalidate().content(Content::Blob(blob));
    let response = response.header("repr-digest", format!("sha-256=:{digest}:"));
    Ok(if old { response.with_status(203) } else { response.header("digest", format!("sha-256={digest}")) })
}

/// Returns true for the user agent of Bundler before 2.5: `bundler/2.3.27 rubygems/3.3.15 …`.
fn is_old_bundler(agent: &str) -> bool {
    let Some(version) = agent.split(' ').find_map(|word| word.strip_prefix("bundler/")) else { return false };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
    (parts.next().unwrap_or(u32::MAX), parts.next().unwrap_or(u32::MAX)) < (2, 5)
}

#[cfg(test)]
mod tests {
    use super::is_old_bundler;

    #[test]
    fn old_bundlers_are_known_by_their_agent() {
        for (agent, old) in [
            ("bundler/2.3.27 rubygems/3.3.15 ruby/3.1.2", true),
            ("bundler/1.17.3", true),
            ("bundler/2.4.22", true),
            ("bundler/2.5.0 rubygems/3.5.0", false),
            ("bundler/4.0.1", false),
            ("Ruby, RubyGems/3.3.15", false),
            ("", false),
        ] {
            assert_eq!(is_old_bundler(agent), old, "{agent}");
        }
    }
}
