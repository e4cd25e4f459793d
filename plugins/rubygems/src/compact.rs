//! The compact index. `info/NAME` has a line for each version. `versions` lists the versions of all
//! gems, with the MD5 of each `info`. A push only appends to both documents, so clients need to
//! fetch only the new part. A yank or a deletion also changes the existing part.

use crate::name;
use crate::records::{GemRecord, text_of};
use crate::spec::{GemDependency, Requirement};
use md5::{Digest as _, Md5};
use packhouse_sdk::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Start of an `info` document.
const HEAD: &str = "---\n";

/// Returns the line of a version in `info/NAME`.
pub(crate) fn line(record: &GemRecord) -> String {
    let spec = &record.spec;
    let needed = spec.dependencies.iter().filter(|one| !one.development).map(needed);
    let mut line = format!("{} {}", spec.number(), needed.collect::<Vec<_>>().join(","));
    let _ = write!(line, "|checksum:{}", record.sha256.hex());
    for (name, requirements) in [("ruby", &spec.ruby), ("rubygems", &spec.rubygems)] {
        let text = requirements_text(requirements);
        if text != ">= 0" {
            let _ = write!(line, ",{name}:{text}");
        }
    }
    line.push('\n');
    line
}

fn needed(one: &GemDependency) -> String {
    format!("{}:{}", one.name, requirements_text(&one.requirements))
}

fn requirements_text(requirements: &[Requirement]) -> String {
    requirements.iter().map(text_of).collect::<Vec<_>>().join("&")
}

/// Renders `info/NAME`. The versions must be in the order in which they were pushed.
pub(crate) fn info(records: &[GemRecord]) -> String {
    let lines = records.iter().filter(|record| record.yanked.is_none()).map(line);
    [HEAD.to_owned()].into_iter().chain(lines).collect()
}

/// Renders `versions`: a line for each push, with the MD5 of the gem's `info` after that push.
/// Yanked versions have no line.
pub(crate) fn versions(mut records: Vec<GemRecord>) -> String {
    sort(&mut records);
    let first = records.first().map_or(0, |record| record.time);
    let mut out = format!("created_at: {}\n---\n", Timestamp::from_ms(first).to_rfc3339());
    let mut sums: BTreeMap<&str, Md5> = BTreeMap::new();
    for record in records.iter().filter(|record| record.yanked.is_none()) {
        let sum = sums.entry(&record.spec.name).or_insert_with(|| Md5::new_with_prefix(HEAD));
        sum.update(line(record));
        let hex: String = sum.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(out, "{} {} {hex}", record.spec.name, record.spec.number());
    }
    out
}

/// Sorts versions by the time of their push, then by name and number.
pub(crate) fn sort(records: &mut [GemRecord]) {
    records.sort_by(|one, other| {
        (one.time, &one.spec.name, one.spec.number()).cmp(&(
            other.time,
            &other.spec.name,
            other.spec.number(),
        ))
    });
}

/// A version that an upstream's `info` lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamVersion {
    /// Version with its platform, as in [`name::number`].
    pub(crate) number: String,
    /// SHA-256 in hex.
    pub(crate) sha256: Option<String>,
    /// Time of the push, in ms since 1970; `None` if the line does not state it.
    pub(crate) published: Option<u64>,
    /// The unchanged line, without its line break.
    pub(crate) line: String,
}

/// Reads the `info` of an upstream. Leaves out invalid lines. Returns the versions and the count of
/// invalid lines. Returns `None` if the text is not an `info`.
pub(crate) fn read_info(text: &str) -> Option<(Vec<UpstreamVersion>, usize)> {
    let (_, lines) = text.split_once("---\n").or_else(|| text.ends_with("---").then_some((text, "")))?;
    let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
    let read: Vec<UpstreamVersion> = lines.iter().filter_map(|line| read_line(line)).collect();
    let left_out = lines.len() - read.len();
    Some((read, left_out))
}

/// Reads a line of an `info`. Returns `None` if it does not start with a valid number, or contains
/// anything but printable ASCII.
pub(crate) fn read_line(line: &str) -> Option<UpstreamVersion> {
    let (number, rest) = line.split_once(' ')?;
    name::parts(number)?;
    if !line.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return None;
    }
    let (_, marks) = rest.split_once('|').unwrap_or((rest, ""));
    let mark = |name: &str| marks.split(',').find_map(|mark| mark.strip_prefix(name)?.strip_prefix(':'));
    let hex = |text: &&str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sha256 = mark("checksum").filter(hex).map(str::to_ascii_lowercase);
    let published = mark("created_at").and_then(|text| Timestamp::parse_rfc3339(text)?.to_ms());
    Some(UpstreamVersion { number: number.to_owned(), sha256, published, line: line.to_owned() })
}

/// Renders `info/NAME` from the versions that an upstream offers.
pub(crate) fn render_info(offered: &[UpstreamVersion]) -> String {
    offered.iter().fold(HEAD.to_owned(), |out, one| out + &one.line + "\n")
}

/// Reads a line of `versions`. Returns the name of the gem, and each of its numbers with a flag.
/// The flag is false if a `-` before the number marks it as removed.
pub(crate) fn read_versions_line(line: &str) -> Option<(&str, impl Iterator<Item = (bool, &str)>)> {
    let mut words = line.split(' ');
    let (gem, numbers) = (words.next()?, words.next()?);
    let numbers = numbers.split(',').map(|number| match number.strip_prefix('-') {
        Some(number) => (false, number),
        None => (true, number),
    });
    name::is_name(gem).then_some((gem, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_upstreams_lines_are_read() {
        let hex = "ab".repeat(32);
        let text = format!(
            "created\n---\n1.0 |checksum:{hex}\n1.1-java rake:>= 1&< 3,b:= 1|checksum:{hex},ruby:>= 2.7,created_at:2026-01-02T03:04:05Z\nnonsense\n../x y|z\n2.0 a:>= 0|\n"
        );
        let (all, left_out) = read_info(&text).unwrap();
        assert_eq!(left_out, 2);
        let numbers: Vec<&str> = all.iter().map(|one| one.number.as_str()).collect();
        assert_eq!(numbers, ["1.0", "1.1-java", "2.0"]);
        assert_eq!(
            (all[0].sha256.as_deref(), all[1].published, &all[2].sha256),
            (Some(hex.as_str()), Some(1_767_323_045_000), &None)
        );
        assert!(read_info("<html>").is_none());
        let (gem, numbers) = read_versions_line("rake 1.0,-1.1,2.0-java 0123").unwrap();
        assert_eq!(
            (gem, numbers.collect::<Vec<_>>()),
            ("rake", vec![(true, "1.0"), (false, "1.1"), (true, "2.0-java")])
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(---\n)?([0-9.]{1,4}( .{0,12}\\|checksum:.{0,8})?\n){0,3}.{0,40}") {
            let _ = (read_info(&text), read_versions_line(&text).map(|(_, numbers)| numbers.count()));
        }
    }
}
