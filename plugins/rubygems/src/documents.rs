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

/// Bytes that are gathered before they are handed to the host.
const PIECE: usize = 256 << 10;

pub(crate) fn plan_many(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::read().many_packages())
}

pub(crate) fn plan_info(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let gem = params.segment("name");
    let intent = Intent::read().subject(gem);
    Ok(if name::is_name(gem) { intent.about_package(gem) } else { intent })
}

/// `GET` of the address itself, which gem asks to know whether there is a compact index.
pub(crate) fn root(_cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Ok(Response::text(format!("A gem repository: gem install NAME --source {}/\n", request.address())))
}

/// `GET /info/NAME`.
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
            return document(request, cx.write_blob(compact::render(&offered).as_bytes())?);
        }
    }
    left_out.or_failure(None)?.ok_or_else(missing)
}

/// `GET /versions`.
pub(crate) fn versions(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let hosted = gems::hosted(cx, records::GEMS)?;
    let mut known: BTreeSet<String> = hosted.iter().map(|record| record.spec.name.clone()).collect();
    let mut out = Lines { writer: cx.writer(), buffer: compact::versions(hosted) };
    each_upstream_line(cx, &mut known, &mut |line, _| out.push(line))?;
    document(request, out.finish()?)
}

/// `GET /names`.
pub(crate) fn names(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let hosted = gems::hosted(cx, records::GEMS)?;
    let mut known: BTreeSet<String> =
        hosted.into_iter().filter(|record| record.yanked.is_none()).map(|record| record.spec.name).collect();
    let mut more = BTreeSet::new();
    each_upstream_line(cx, &mut known.clone(), &mut |_, name| {
        if !more.contains(name) {
            more.insert(name.to_owned());
        }
        Ok(())
    })?;
    known.append(&mut more);
    let mut out = Lines { writer: cx.writer(), buffer: "---\n".to_owned() };
    for name in &known {
        out.push(name)?;
    }
    document(request, out.finish()?)
}

/// Hands over each line of the proxies' `versions` with the gem's name, but for gems that are known
/// already or must not come from an upstream. What one proxy has is not looked for in the next. 404
/// where no repository has an index.
pub(crate) fn each_upstream_line(
    cx: &Context,
    known: &mut BTreeSet<String>,
    each: &mut dyn FnMut(&str, &str) -> Result<(), Error>,
) -> Result<(), Failure> {
    let (proxies, mut left_out) = (cx.proxies()?, cx.left_out());
    let mut is_there = proxies.is_empty() || !cx.hosted()?.is_empty();
    for (at, proxy) in proxies.iter().enumerate() {
        // Of the last one nobody asks what it had.
        let seen = upstream_lines(cx, proxy, known, at + 1 < proxies.len(), each);
        if let Some(mut seen) = left_out.unless_failed(proxy, seen)? {
            is_there = true;
            known.append(&mut seen);
        }
    }
    let missing = || Failure::not_found("There is no index of gems in this repository");
    left_out.or_failure(is_there.then_some(()))?.ok_or_else(missing)
}

/// Hands over the lines of one proxy. Returns the names that were new where they are `wanted`; none
/// where it has no index.
fn upstream_lines(
    cx: &Context,
    proxy: &Repository,
    known: &BTreeSet<String>,
    wanted: bool,
    each: &mut dyn FnMut(&str, &str) -> Result<(), Error>,
) -> Result<Option<BTreeSet<String>>, Failure> {
    let Some(mut lines) = VersionLines::open(cx, proxy)? else { return Ok(None) };
    let (mut seen, mut left_out) = (BTreeSet::new(), 0);
    while let Some(page) = lines.page()? {
        let read = page.iter().filter_map(|line| Some((line.as_str(), compact::listed(line)?.0)));
        let mut read: Vec<(&str, &str)> = read.collect();
        left_out += page.len() - read.len();
        read.retain(|(_, name)| !known.contains(*name));
        let names: BTreeSet<String> = read.iter().map(|(_, name)| (*name).to_owned()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let withheld = proxy.withheld(&names)?;
        for (line, name) in read.into_iter().filter(|(_, name)| !withheld.contains(*name)) {
            each(line, name)?;
        }
        if wanted {
            seen.extend(names);
        }
    }
    // Which gems they are of cannot be read either.
    cx.log().left_out("", "versions", left_out);
    Ok(Some(seen))
}

/// Lines on their way to a blob.
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

/// A document of the compact index, with the digest by which Bundler checks what it has put together of two answers.
///
/// Before 2.5 Bundler compared `ETag` with the MD5 of the document, and gave up where it was another. The host's is another, so that to
/// such a Bundler nothing is said of it: an answer of 203 has no `ETag`.
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

/// As `bundler/2.3.27 rubygems/3.3.15 …`.
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
