//! A proxy: the pages of another sparse index with this server's addresses, and the files that they name by their checksums.

use crate::found::Found;
use crate::line::ForeignLine;
use crate::name::{Name, folders, place};
use crate::{FILE_LIMIT, withdrawn};
use packhouse_sdk::{
    Blob, Context, Error, Failure, Freshness, ReadAt, Release, ReleaseVerdict, Reply, Repository, Response,
    Settings, percent_encode,
};
use serde::Deserialize;

/// Bytes of a crate's page, which is held in memory twice.
const PAGE: u64 = 12 << 20;
/// Bytes of the upstream's other documents.
const DOCUMENT: u64 = 4 << 20;

/// Where an upstream has what: its `config.json`.
#[derive(Deserialize)]
struct Config {
    dl: String,
    #[serde(default)]
    api: Option<String>,
}

/// The lines of a crate, spelt so, that may be offered, those of versions among them that vanished upstream.
pub(crate) fn lines(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    spelt: &str,
) -> Result<Vec<ForeignLine>, Failure> {
    let Some(all) = page(cx, proxy, name, spelt)? else { return Ok(Vec::new()) };
    let gone = withdrawn::find(proxy, name, spelt, &all)?;
    let mut offered = proxy.offered(name.as_str(), all, |line| release(line, false))?;
    offered.extend(proxy.offered(name.as_str(), gone, |line| release(line, true))?);
    Ok(offered)
}

fn release(line: &ForeignLine, withdrawn: bool) -> Release {
    Release::of(line.version.to_string(), line.published, withdrawn)
}

/// The lines of the upstream's page of a crate: empty if there is no page, none if the upstream
/// refuses to say.
fn page(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    spelt: &str,
) -> Result<Option<Vec<ForeignLine>>, Failure> {
    let target = format!("/{}", place(&spelt.to_ascii_lowercase()));
    let reply = cx.upstream("GET", &target).limit(PAGE).metadata().start(proxy)?;
    let body = match reply.look()? {
        packhouse_sdk::Found::There(reply) => reply.body()?,
        packhouse_sdk::Found::Nothing => return Ok(Some(Vec::new())),
        packhouse_sdk::Found::Refused => return Ok(None),
    };
    let unusable = |what: &str| useless(&format!("{what}, for {target}"));
    let text = String::from_utf8(body.read_all(PAGE)?).map_err(|_| unusable("its page is not UTF-8"))?;
    let written: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let read: Vec<ForeignLine> = written.iter().filter_map(|line| ForeignLine::read(line)).collect();
    let own = |line: &ForeignLine| {
        Name::new(&line.name).as_ref() == Some(name) && line.name.eq_ignore_ascii_case(spelt)
    };
    // A page for people that stands there is none of the index.
    if read.is_empty() && !written.is_empty() {
        return Err(unusable("its page holds no line of an index"));
    }
    cx.log().left_out(name.as_str(), "versions", written.len() - read.len());
    Ok(Some(read.into_iter().filter(own).collect()))
}

/// The file of a version, which must be what its line says.
pub(crate) fn file(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    spelt: &str,
    number: &str,
) -> Result<Option<Response>, Failure> {
    let Some(known) = page(cx, proxy, name, spelt)? else { return Ok(None) };
    let listed = known.iter().find(|line| line.version.to_string() == number).cloned();
    let (line, gone) = match listed {
        Some(line) => (line, false),
        None => match withdrawn::find(proxy, name, spelt, &known)?
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
        withdrawn::remember(proxy, name, &line)?;
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
        Error::Invalid(_) => useless("its config.json does not say where files are"),
        other => other.into(),
    })?;
    Ok(found(reply)?.map(Response::blob))
}

/// What the upstream says of itself; none where it does not.
fn config(cx: &Context, proxy: &Repository) -> Result<Option<Config>, Failure> {
    let reply = cx.upstream("GET", "/config.json").limit(DOCUMENT).metadata().start(proxy)?;
    let Some(body) = found(reply)? else { return Ok(None) };
    let config = serde_json::from_slice(&body.read_all(DOCUMENT)?);
    config.map(Some).map_err(|error| useless(&format!("{error}, for /config.json")))
}

/// An address that lies below the upstream's own as a target there: to others no credentials are shown.
fn below(proxy: &Repository, address: &str) -> Result<String, Error> {
    Ok(packhouse_sdk::address::below(&Settings::of(proxy)?.upstream.unwrap_or_default(), address).to_owned())
}

/// Where a file is: a template with places in braces, or what the name, the version and `download` are added to.
fn address(template: &str, line: &ForeignLine) -> String {
    let (version, lower) = (percent_encode(&line.version.to_string()), line.name.to_ascii_lowercase());
    let places = [
        ("{crate}", line.name.clone()),
        ("{version}", version.clone()),
        ("{prefix}", folders(&line.name)),
        ("{lowerprefix}", folders(&lower)),
        ("{sha256-checksum}", line.checksum.hex().to_owned()),
    ];
    if places.iter().all(|(place, _)| !template.contains(place)) {
        return format!("{}/{}/{version}/download", template.trim_end_matches('/'), line.name);
    }
    places.iter().fold(template.to_owned(), |text, (place, value)| text.replace(place, value))
}

/// What the upstream finds, without names that it may not serve; nothing where its words name one, or it has no API.
pub(crate) fn search(cx: &Context, proxy: &Repository, words: &str, limit: u32) -> Result<Found, Failure> {
    let asked: Vec<String> =
        words.split_whitespace().filter_map(Name::new).map(|name| name.as_str().to_owned()).collect();
    if !proxy.withheld(&asked)?.is_empty() {
        return Ok(Found::default());
    }
    let Some(api) = config(cx, proxy)?.and_then(|config| config.api) else { return Ok(Found::default()) };
    let target =
        format!("{}/api/v1/crates?q={}&per_page={limit}", api.trim_end_matches('/'), percent_encode(words));
    let fetch = cx.upstream("GET", &below(proxy, &target)?).header("accept", "application/json");
    let Some(body) = found(fetch.limit(DOCUMENT).metadata().start(proxy)?)? else {
        return Ok(Found::default());
    };
    let mut read: Found = serde_json::from_slice(&body.read_all(DOCUMENT)?)
        .map_err(|error| useless(&format!("what it finds cannot be read: {error}")))?;
    let spelt = |name: &str| Name::new(name).map(|name| name.as_str().to_owned());
    let names: Vec<String> = read.crates.iter().filter_map(|one| spelt(&one.name)).collect();
    let withheld = proxy.withheld(&names)?;
    read.crates.retain(|one| spelt(&one.name).is_some_and(|name| !withheld.contains(&name)));
    Ok(read)
}

/// The body of an upstream's answer to a question for something that it may not have.
fn found(reply: Reply) -> Result<Option<Blob>, Failure> {
    Ok(reply.found()?.map(Reply::body).transpose()?)
}

/// 502 for what nothing can be done with.
fn useless(text: &str) -> Failure {
    Failure::unusable_upstream(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_are_where_the_template_says() {
        let text = format!(r#"{{"name":"Serde_x","vers":"1.0.0+a","cksum":"{}"}}"#, "ab".repeat(32));
        let line = ForeignLine::read(&text).unwrap();
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
        fn any_template_gives_an_address(template in "\\PC{0,60}") {
            let text = format!(r#"{{"name":"a","vers":"1.0.0","cksum":"{}"}}"#, "ab".repeat(32));
            let _ = address(&template, &ForeignLine::read(&text).unwrap());
        }
    }
}
