//! `specs.4.8.gz`, `latest_specs.4.8.gz` and `prerelease_specs.4.8.gz`: name, version and platform
//! of each gem, in Ruby's Marshal format.

use crate::documents::each_upstream_line;
use crate::marshal::Marshal;
use crate::{compact, gems, name, records, version};
use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_sdk::{Context, Error, Failure, Params, Request, Response};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

/// The most versions in one index. Hosted versions may exceed this number. If versions of upstreams
/// would exceed it, the plugin answers 404, and clients must use the compact index.
const MANY: usize = 200_000;

/// Pairs of a gem name and a number.
type GemNumbers = BTreeSet<(String, String)>;

pub(crate) fn released(cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut all = all(cx)?;
    all.retain(|(_, number)| !is_prerelease(number));
    respond(cx, &all)
}

pub(crate) fn prerelease(
    cx: &Context,
    _request: &Request,
    _params: &Params<'_>,
) -> Result<Response, Failure> {
    let mut all = all(cx)?;
    all.retain(|(_, number)| is_prerelease(number));
    respond(cx, &all)
}

/// Serves the highest version, without pre-releases, of each gem on each platform.
pub(crate) fn latest(cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let mut highest: BTreeMap<(String, String), String> = BTreeMap::new();
    for (gem, number) in all(cx)? {
        let Some((version, platform)) = name::parts(&number).filter(|_| !is_prerelease(&number)) else {
            continue;
        };
        let current = highest.entry((gem, platform.to_owned())).or_insert_with(|| version.to_owned());
        if version::compare(version, current) == Ordering::Greater {
            *current = version.to_owned();
        }
    }
    let all = highest.into_iter().map(|((gem, platform), version)| (gem, name::number(&version, &platform)));
    respond(cx, &all.collect())
}

fn is_prerelease(number: &str) -> bool {
    name::parts(number).is_some_and(|(version, _)| version::is_prerelease(version))
}

fn all(cx: &Context) -> Result<GemNumbers, Failure> {
    let hosted = gems::hosted(cx, records::GEMS)?;
    let mut known: BTreeSet<String> = hosted.iter().map(|record| record.spec.name.clone()).collect();
    let hosted = hosted.into_iter().filter(|record| record.yanked.is_none());
    let mut found: GemNumbers =
        hosted.map(|record| (record.spec.name.clone(), record.spec.number())).collect();
    let mut too_many = false;
    each_upstream_line(cx, &mut known, &mut |line, gem| {
        let Some((_, numbers)) = compact::read_versions_line(line) else { return Ok(()) };
        for (is_listed, number) in numbers.filter(|(_, number)| name::parts(number).is_some()) {
            let one = (gem.to_owned(), number.to_owned());
            if !is_listed {
                found.remove(&one);
            } else if found.len() < MANY {
                found.insert(one);
            } else {
                too_many = true;
            }
        }
        Ok(())
    })?;
    if too_many {
        let text = "This index is limited to 200,000 versions, and this repository has more. Use the compact index, as gem and Bundler do by default";
        return Err(Failure::not_found(text));
    }
    Ok(found)
}

fn respond(cx: &Context, all: &GemNumbers) -> Result<Response, Failure> {
    let broken = |error: std::io::Error| Error::Other(error.to_string());
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let mut out = Marshal::new();
    out.array(all.len());
    for (gem, number) in all {
        let (version, platform) = name::parts(number).unwrap_or((number, "ruby"));
        out.array(3);
        out.text(gem);
        out.version(version);
        out.text(platform);
        if out.pending() > 64 << 10 {
            gzip.write_all(&out.take()).map_err(broken)?;
        }
    }
    gzip.write_all(&out.take()).map_err(broken)?;
    let blob = cx.write_blob(&gzip.finish().map_err(broken)?)?;
    Ok(Response::blob(blob).content_type("application/gzip").revalidate())
}
