//! Reads through a proxy: lines of an upstream's sparse index, and crate files. Each crate file
//! must match the checksum in its line.

use crate::line::UpstreamLine;
use crate::name::{Name, index_folders, index_path};
use crate::search_results::SearchResults;
use crate::{FILE_LIMIT, withdrawn};
use packhouse_sdk::{
    Blob, Context, Error, Failure, Freshness, ReadAt, Release, ReleaseVerdict, Reply, Repository, Response,
    Settings, percent_encode,
};
use serde::Deserialize;

/// Largest page of a crate, in bytes. The plugin holds a page in memory twice.
const PAGE_LIMIT: u64 = 12 << 20;
/// Bytes of the largest other document of an upstream.
const DOCUMENT_LIMIT: u64 = 4 << 20;

/// The `config.json` of an upstream: the addresses of its files and its API.
#[derive(Deserialize)]
struct UpstreamConfig {
    dl: String,
    #[serde(default)]
    api: Option<String>,
}

/// Returns the lines of a crate that the proxy may offer, for one spelling of its name. The result
/// includes versions that vanished from the upstream, if the host still allows them.
pub(crate) fn lines(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    spelling: &str,
) -> Result<Vec<UpstreamLine>, Failure> {
    let Some(all) = page(cx, proxy, name, spelling)? else { return Ok(Vec::new()) };
    let gone = withdrawn::update(proxy, name, spelling, &all)?;
    let mut offered = proxy.offered(name.as_str(), all, |line| release(line, false))?;
    offered.extend(proxy.offered(name.as_str(), gone, |line| release(line, true))?);
    Ok(offered)
}

fn release(line: &UpstreamLine, withdrawn: bool) -> Release {
    Release::of(line.version.to_string(), line.published, withdrawn)
}

/// Returns the lines of a crate's page at the upstream. Empty if the upstream has no page, `None`
/// if it refuses the request.
fn page(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    spelling: &str,
) -> Result<Option<Vec<UpstreamLine>>, Failure> {
    let target = format!("/{}", index_path(&spelling.to_ascii_lowercase()));
    let reply = cx.upstream("GET", &target).limit(PAGE_LIMIT).metadata().start(proxy)?;
    let body = match reply.look()? {
        packhouse_sdk::Found::There(reply) => reply.body()?,
        packhouse_sdk::Found::Nothing => return Ok(Some(Vec::new())),
        packhouse_sdk::Found::Refused => return Ok(None),
    };
    let unusable = |problem: &str| unusable_upstream(&format!("{problem}, for {target}"));
    let text =
        String::from_utf8(body.read_all(PAGE_LIMIT)?).map_err(|_| unusable("its page is not UTF-8"))?;
    let written: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let read: Vec<UpstreamLine> = written.iter().filter_map(|line| UpstreamLine::read(line)).collect();
    let own = |line: &UpstreamLine| {
        Name::new(&line.name).as_ref() == Some(name) && line.name.eq_ignore_ascii_case(spelling)
    };
    // The upstream sent a page for browsers, not a page of an index.
    if read.is_empty() && !written.is_empty() {
        return Err(unusable("its page has no valid line of an index"));
    }
    cx.log().left_out(name.as_str(), "versions", written.len() - read.len());
    Ok(Some(read.into_iter().filter(own).collect()))
}

/// Fetches the file of a version, which must match the checksum in the version's line. `None` if
/// the upstream does not have the file or the host withholds it.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    spelling: &str,
    number: &str,
) -> Result<Option<Response>, Failure> {
    let Some(known) = page(cx, proxy, name, spelling)? else { return Ok(None) };
    let listed = known.iter().find(|line| line.version.to_string() == number).cloned();
    let (line, gone) = match listed {
        Some(line) => (line, false),
        None => match withdrawn::update(proxy, name, spelling, &known)?
            .into_iter()
            .find(|line| line.version.to_string() == number)
        {
            Some(line) => (line, true),
            None => return Ok(None),
        },
    };
    if proxy.judge_asked(name.as_str(), &release(&line, gone))? == ReleaseVerdict::Withheld {
        return Ok(None);
    }
    if !gone {
        withdrawn::record_fetched(proxy, name, &line)?;
    }
    let path = format!("api/v1/crates/{}/{number}/download", line.name);
    let Some(config) = config(cx, proxy)? else { return Ok(None) };
    let fetch = cx
        .upstream("GET", &below(proxy, &address(&config.dl, &line))?)
        .fresh(Freshness::Immutable)
        .limit(FILE_LIMIT)
        .expect(&line.checksum)
        .show_as(name.as_str(), number, &path);
    let reply = fetch.start(proxy).map_err(|error| match error {
        Error::Invalid(_) => unusable_upstream("its config.json has no usable download address"),
        other => other.into(),
    })?;
    Ok(found(reply)?.map(Response::blob))
}

/// Fetches the `config.json` of the upstream. `None` if it has none.
fn config(cx: &Context, proxy: &Repository) -> Result<Option<UpstreamConfig>, Failure> {
    let reply = cx.upstream("GET", "/config.json").limit(DOCUMENT_LIMIT).metadata().start(proxy)?;
    let Some(body) = found(reply)? else { return Ok(None) };
    let config = serde_json::from_slice(&body.read_all(DOCUMENT_LIMIT)?);
    config.map(Some).map_err(|error| unusable_upstream(&format!("{error}, for /config.json")))
}

/// Converts an address below the upstream's URL to a relative path, and returns any other address
/// unchanged. The host sends credentials only with relative paths.
fn below(proxy: &Repository, address: &str) -> Result<String, Error> {
    Ok(packhouse_sdk::address::below(&Settings::of(proxy)?.upstream.unwrap_or_default(), address).to_owned())
}

/// Returns the address of a crate file. The values replace the placeholders in `template`. A
/// template without placeholders gets the name, the version and `download` at its end.
fn address(template: &str, line: &UpstreamLine) -> String {
    let (version, lower) = (percent_encode(&line.version.to_string()), line.name.to_ascii_lowercase());
    let placeholders = [
        ("{crate}", line.name.clone()),
        ("{version}", version.clone()),
        ("{prefix}", index_folders(&line.name)),
        ("{lowerprefix}", index_folders(&lower)),
        ("{sha256-checksum}", line.checksum.hex().to_owned()),
    ];
    if placeholders.iter().all(|(placeholder, _)| !template.contains(placeholder)) {
        return format!("{}/{}/{version}/download", template.trim_end_matches('/'), line.name);
    }
    placeholders
        .iter()
        .fold(template.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
}

/// Searches the upstream, and leaves out names that the host withholds. Finds nothing if the words
/// contain a withheld name, or if the upstream has no API.
pub(crate) fn search(
    cx: &Context,
    proxy: &Repository,
    words: &str,
    limit: u32,
) -> Result<SearchResults, Failure> {
    let requested: Vec<String> =
        words.split_whitespace().filter_map(Name::new).map(|name| name.as_str().to_owned()).collect();
    if !proxy.withheld(&requested)?.is_empty() {
        return Ok(SearchResults::default());
    }
    let Some(api) = config(cx, proxy)?.and_then(|config| config.api) else {
        return Ok(SearchResults::default());
    };
    let target =
        format!("{}/api/v1/crates?q={}&per_page={limit}", api.trim_end_matches('/'), percent_encode(words));
    let fetch = cx.upstream("GET", &below(proxy, &target)?).header("accept", "application/json");
    let Some(body) = found(fetch.limit(DOCUMENT_LIMIT).metadata().start(proxy)?)? else {
        return Ok(SearchResults::default());
    };
    let mut read: SearchResults = serde_json::from_slice(&body.read_all(DOCUMENT_LIMIT)?)
        .map_err(|error| unusable_upstream(&format!("its search results cannot be read: {error}")))?;
    let folded = |name: &str| Name::new(name).map(|name| name.as_str().to_owned());
    let names: Vec<String> = read.crates.iter().filter_map(|one| folded(&one.name)).collect();
    let withheld = proxy.withheld(&names)?;
    read.crates.retain(|one| folded(&one.name).is_some_and(|name| !withheld.contains(&name)));
    Ok(read)
}

/// The body of a reply. `None` if the upstream does not have the document.
fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// 502 for an upstream whose reply is unusable.
fn unusable_upstream(text: &str) -> Failure {
    Failure::unusable_upstream(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn download_addresses_follow_the_template() {
        let text = format!(r#"{{"name":"Serde_x","vers":"1.0.0+a","cksum":"{}"}}"#, "ab".repeat(32));
        let line = UpstreamLine::read(&text).unwrap();
        for (template, expected) in [
            ("https://a.test/api/v1/crates", "https://a.test/api/v1/crates/Serde_x/1.0.0%2Ba/download"),
            ("https://a.test/{crate}/{version}.crate", "https://a.test/Serde_x/1.0.0%2Ba.crate"),
            ("https://a.test/{prefix}/{lowerprefix}", "https://a.test/Se/rd/se/rd"),
        ] {
            assert_eq!(address(template, &line), expected);
        }
        assert!(address("x/{sha256-checksum}", &line).ends_with(&"ab".repeat(32)));
    }

    proptest! {
        #[test]
        fn any_template_is_handled(template in "\\PC{0,60}") {
            let text = format!(r#"{{"name":"a","vers":"1.0.0","cksum":"{}"}}"#, "ab".repeat(32));
            let _ = address(&template, &UpstreamLine::read(&text).unwrap());
        }
    }
}
