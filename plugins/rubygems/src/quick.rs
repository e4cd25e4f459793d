//! `quick/Marshal.4.8/STEM.gemspec.rz`: a compressed `Gem::Specification` in Marshal format.

use crate::files;
use crate::gems;
use crate::marshal::Marshal;
use crate::proxy;
use crate::spec::{GemDependency, Requirement, Spec};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use packhouse_sdk::{Context, Error, Failure, Params, Request, Response};
use std::io::Write as _;

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let file = params.segment("file");
    let stem = file.strip_suffix(".gemspec.rz").ok_or_else(|| files::missing(file))?;
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            return proxy::quick(cx, repository, stem);
        }
        let Some(record) = gems::by_stem(repository, stem)? else { return Ok(None) };
        let bytes = compressed(&dump(&record.spec))?;
        Ok(Some(Response::bytes(bytes).modified(record.time).revalidate()))
    })?;
    found.ok_or_else(|| files::missing(file))
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = out.write_all(bytes).and_then(|()| out.finish());
    written.map_err(|error| Error::Other(error.to_string()))
}

/// Serializes a specification like `Marshal.dump(spec)` in Ruby: the 19 values of
/// `Gem::Specification#_dump`, in the same order.
fn dump(spec: &Spec) -> Vec<u8> {
    let mut out = Marshal::new();
    out.array(19);
    out.text(if spec.built_by.is_empty() { "3.0.0" } else { &spec.built_by });
    out.number(4);
    out.text(&spec.name);
    out.version(&spec.version);
    out.text(if spec.date.is_empty() { "1980-01-02" } else { &spec.date });
    out.text(&spec.summary);
    requirement(&mut out, &spec.ruby);
    requirement(&mut out, &spec.rubygems);
    out.text(&spec.platform);
    out.array(spec.dependencies.len());
    spec.dependencies.iter().for_each(|one| dependency(&mut out, one));
    out.text("");
    texts(&mut out, &spec.email);
    texts(&mut out, &spec.authors);
    out.text(&spec.description);
    out.text(&spec.homepage);
    out.boolean(true);
    platform(&mut out, &spec.platform);
    texts(&mut out, &spec.licenses);
    out.hash(spec.metadata.len());
    for (name, value) in &spec.metadata {
        out.text(name);
        out.text(value);
    }
    let mut whole = Marshal::new();
    whole.dumped("Gem::Specification", &out.finish());
    whole.finish()
}

fn texts(out: &mut Marshal, all: &[String]) {
    out.array(all.len());
    all.iter().for_each(|one| out.text(one));
}

fn requirement(out: &mut Marshal, all: &[Requirement]) {
    out.loaded("Gem::Requirement");
    out.array(1);
    out.array(all.len());
    for Requirement(comparison, version) in all {
        out.array(2);
        out.text(comparison);
        out.version(version);
    }
}

fn dependency(out: &mut Marshal, one: &GemDependency) {
    out.object("Gem::Dependency", 4);
    out.symbol("@name");
    out.text(&one.name);
    out.symbol("@requirement");
    requirement(out, &one.requirements);
    out.symbol("@type");
    out.symbol(if one.development { "development" } else { "runtime" });
    out.symbol("@prerelease");
    out.boolean(false);
}

/// Writes a platform: `ruby` as a text, any other platform as an object with CPU, system and
/// version.
fn platform(out: &mut Marshal, text: &str) {
    if text == "ruby" {
        return out.text(text);
    }
    let (cpu, os, version) = platform_parts(text);
    out.object("Gem::Platform", 3);
    for (name, value) in [("@cpu", cpu), ("@os", Some(os)), ("@version", version)] {
        out.symbol(name);
        match value {
            Some(value) => out.text(&value),
            None => out.nil(),
        }
    }
}

/// Splits a platform into CPU, system and the version of the system, as `Gem::Platform` does.
fn platform_parts(text: &str) -> (Option<String>, String, Option<String>) {
    let (cpu, rest) = match text.split_once('-') {
        Some((cpu, rest)) => (Some(cpu), rest),
        None => (None, text),
    };
    let x86 = |cpu: &str| {
        let old = cpu.len() == 4 && cpu.starts_with('i') && cpu.ends_with("86");
        if old { "x86".to_owned() } else { cpu.to_owned() }
    };
    let cpu = cpu.map(x86);
    if rest == "jruby" {
        return (cpu, "java".to_owned(), None);
    }
    if let Some((os, version)) = rest.split_once('-') {
        return (cpu, os.to_owned(), Some(version.to_owned()));
    }
    let bare = ["mingw32", "mswin32", "mswin64"].contains(&rest);
    let numbered = ["darwin", "freebsd", "aix", "java", "solaris"].into_iter().find_map(|os| {
        let version = rest.strip_prefix(os)?;
        (!version.is_empty()).then(|| (os.to_owned(), Some(version.to_owned())))
    });
    let (os, version) = match numbered {
        Some(found) if !bare => found,
        _ => (rest.to_owned(), None),
    };
    let cpu = if cpu.is_none() && os.ends_with("32") { Some("x86".to_owned()) } else { cpu };
    (cpu, os, version)
}

#[cfg(test)]
mod tests {
    use super::platform_parts;

    #[test]
    fn platforms_are_read_as_ruby_does_it() {
        for (text, cpu, os, version) in [
            ("java", None, "java", None),
            ("x86_64-linux", Some("x86_64"), "linux", None),
            ("x86_64-linux-musl", Some("x86_64"), "linux", Some("musl")),
            ("arm64-darwin22", Some("arm64"), "darwin", Some("22")),
            ("i686-linux", Some("x86"), "linux", None),
            ("x64-mingw-ucrt", Some("x64"), "mingw", Some("ucrt")),
            ("x86-mingw32", Some("x86"), "mingw32", None),
            ("mswin32", Some("x86"), "mswin32", None),
        ] {
            let read = platform_parts(text);
            assert_eq!((read.0.as_deref(), read.1.as_str(), read.2.as_deref()), (cpu, os, version), "{text}");
        }
    }
}
