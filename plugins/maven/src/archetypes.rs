//! `archetype-catalog.xml` of a group: the merged catalogues of all members.

use crate::layout::{FilePath, PathTarget};
use crate::{hosted, proxy};
use packhouse_sdk::{Blob, Content, Context, Failure, ReadAt, Repository, Request, Response};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::{BTreeMap, BTreeSet};

/// Path of the catalogue in a repository.
pub(crate) const PATH: &str = "archetype-catalog.xml";

/// Largest catalogue that is merged, in bytes.
const LIMIT: u64 = 24 << 20;

const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<archetype-catalog>\n  <archetypes>\n";
const END: &str = "  </archetypes>\n</archetype-catalog>\n";

/// An archetype of a catalogue: its coordinates, and the range of its element in the text.
struct Archetype {
    package: String,
    version: String,
    start: usize,
    end: usize,
}

/// Merges the catalogues of all members. If only one member has a catalogue, returns it unchanged.
/// `None` if no member has one.
pub(crate) fn merged(cx: &Context, request: &Request) -> Result<Option<Blob>, Failure> {
    let mut left_out = cx.left_out();
    let mut found = Vec::new();
    for member in cx.hosted()?.into_iter().chain(cx.proxies()?) {
        if let Some(blob) = left_out.unless_failed(member, catalogue(cx, member, request))? {
            found.push((member, blob));
        }
    }
    if found.len() < 2 {
        return left_out.or_failure(found.pop().map(|(_, blob)| blob));
    }
    let (mut out, mut names, mut has_readable) = (cx.writer(), BTreeSet::new(), false);
    out.write(BEGIN.as_bytes())?;
    for (member, blob) in found {
        let offered = read_catalogue(member, &blob).map(Some);
        let Some((text, archetypes)) = left_out.unless_failed(member, offered)? else { continue };
        has_readable = true;
        for Archetype { package, version, start, end } in archetypes {
            if names.insert(format!("{package}:{version}")) {
                let text = text.get(start..end).unwrap_or_default();
                out.write(format!("    {text}\n").as_bytes())?;
            }
        }
    }
    left_out.or_failure(has_readable.then_some(()))?;
    out.write(END.as_bytes())?;
    Ok(Some(out.finish()?))
}

/// Returns the catalogue of a member. `None` if the member has none.
fn catalogue(cx: &Context, member: &Repository, request: &Request) -> Result<Option<Blob>, Failure> {
    let file = FilePath::stored(PATH);
    let answer = if member.is_proxy() {
        proxy::fetch_file(cx, member, &file)
    } else {
        hosted::get(cx, member, request, &PathTarget::File(file))
    };
    match answer {
        Ok(Response { content: Content::Blob(blob), .. }) => Ok(Some(blob)),
        Err(failure) if failure.status != 404 => Err(failure),
        _ => Ok(None),
    }
}

/// Reads a member's catalogue. Returns its text and the archetypes that this member may offer.
fn read_catalogue(member: &Repository, blob: &Blob) -> Result<(String, Vec<Archetype>), Failure> {
    if blob.size()? > LIMIT {
        let limit = LIMIT >> 20;
        return Err(unusable(&format!("it is larger than {limit} MiB, the limit for a group")));
    }
    let text = crate::metadata::decoded(&blob.read_all(LIMIT)?).into_owned();
    let mut archetypes =
        read(&text).map_err(|why| unusable(&format!("it is not an archetype catalogue: {why}")))?;
    if member.is_proxy() {
        let packages: BTreeSet<&String> = archetypes.iter().map(|archetype| &archetype.package).collect();
        let packages: Vec<String> = packages.into_iter().cloned().collect();
        let withheld = member.withheld(&packages)?;
        archetypes.retain(|archetype| !withheld.contains(&archetype.package));
    }
    Ok((text, archetypes))
}

/// 502: a member's catalogue cannot be merged.
fn unusable(why: &str) -> Failure {
    Failure::unusable_upstream(format!("{why}, for {PATH}"))
}

fn read(text: &str) -> Result<Vec<Archetype>, String> {
    let mut reader = Reader::from_str(text);
    let (mut path, mut archetypes): (Vec<String>, Vec<Archetype>) = (Vec::new(), Vec::new());
    let (mut start, mut fields, mut is_catalogue) = (0, BTreeMap::new(), false);
    loop {
        let before = position(&reader);
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => {
                path.push(tag.local_name().into_inner().to_owned());
                is_catalogue |= path == ["archetype-catalog"];
                if path == ["archetype-catalog", "archetypes", "archetype"] {
                    (start, fields) = (before, BTreeMap::new());
                }
            }
            Event::Text(value) => {
                if let [_, _, archetype, field] = path.as_slice()
                    && archetype == "archetype"
                {
                    fields.insert(field.clone(), value.xml10_content().trim().to_owned());
                }
            }
            Event::End(_) => {
                if path == ["archetype-catalog", "archetypes", "archetype"] {
                    let mut field = |name: &str| fields.remove(name).unwrap_or_default();
                    let package = format!("{}:{}", field("groupId"), field("artifactId"));
                    archetypes.push(Archetype {
                        package,
                        version: field("version"),
                        start,
                        end: position(&reader),
                    });
                }
                path.pop();
            }
            Event::Eof if is_catalogue && path.is_empty() => return Ok(archetypes),
            Event::Eof => return Err("its root element is missing or not closed".to_owned()),
            _ => {}
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archetypes_are_found_with_their_positions() {
        let one = "<archetype><groupId>g</groupId><artifactId>a</artifactId><version>1</version></archetype>";
        let two = "<archetype>\n<version> 2 </version><artifactId>b</artifactId><groupId>g</groupId><description>x &amp; y</description></archetype>";
        let text = format!(
            "<?xml version=\"1.0\"?><archetype-catalog xmlns=\"x\"><archetypes>{one}\n{two}</archetypes></archetype-catalog>"
        );
        let found = read(&text).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.package.as_str(), one.version.as_str(), &text[one.start..one.end]))
            .collect();
        assert_eq!(found, [("g:a", "1", one), ("g:b", "2", two)]);
        for broken in
            ["", "<html></html>", "<archetype-catalog><archetypes>", "<archetype-catalog></archetypes>"]
        {
            assert!(read(broken).is_err(), "{broken}");
        }
    }
}
