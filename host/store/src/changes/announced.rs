//! Announcement of changes from one server to the others. It is a JSON list of repositories, each
//! with its id and its first and last revision. If the text is small enough, it also has the
//! touched records, packages, blob rows and cached responses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::log::Touched;
use crate::ids::{CacheName, RepositoryId};

/// Maximum bytes of a detailed announcement. A larger one has only the revisions, so receivers
/// treat the whole repository as changed.
const MOST: usize = 256 * 1024;

/// Writes the text of an announcement.
pub(crate) fn write(touched: &BTreeMap<RepositoryId, Touched>) -> Vec<u8> {
    let whole = |(id, touched): (&RepositoryId, &Touched)| {
        let answers: Vec<String> = touched.answers.iter().map(hex::encode).collect();
        let Touched { first, last, records, packages, blobs, .. } = touched;
        json!([id.0, first, last, records, packages, blobs, answers])
    };
    let text = Value::from_iter(touched.iter().map(whole)).to_string();
    if text.len() <= MOST {
        return text.into_bytes();
    }
    let short = |(id, touched): (&RepositoryId, &Touched)| json!([id.0, touched.first, touched.last]);
    Value::from_iter(touched.iter().map(short)).to_string().into_bytes()
}

/// Announced changes of one repository.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) repository: RepositoryId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Details; `None` if there were too many to send.
    pub(crate) touched: Option<Touched>,
}

/// Parses an announcement; `None` if it is malformed.
pub(crate) fn read(text: &[u8]) -> Option<Vec<Announced>> {
    let list: Vec<Value> = serde_json::from_slice(text).ok()?;
    list.iter().map(one).collect()
}

fn one(of: &Value) -> Option<Announced> {
    let repository = RepositoryId(of.get(0)?.as_i64()?);
    let (first, last) = (of.get(1)?.as_u64()?, of.get(2)?.as_u64()?);
    let Some(records) = of.get(3) else {
        return Some(Announced { repository, first, last, touched: None });
    };
    let texts = |of: &Value| -> Option<Vec<Box<str>>> {
        of.as_array()?.iter().map(|text| Some(text.as_str()?.into())).collect()
    };
    let name = |text: &Value| -> Option<CacheName> { hex::decode(text.as_str()?).ok()?.try_into().ok() };
    let touched = Touched {
        first,
        last,
        records: texts(records)?,
        packages: texts(of.get(4)?)?,
        blobs: of.get(5)?.as_array()?.iter().map(Value::as_i64).collect::<Option<_>>()?,
        answers: of.get(6)?.as_array()?.iter().map(name).collect::<Option<_>>()?,
    };
    Some(Announced { repository, first, last, touched: Some(touched) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(records: usize) -> BTreeMap<RepositoryId, Touched> {
        let mut touched = Touched::from(3);
        touched.last = 5;
        touched.records = (0..records).map(|number| format!("a \"key\" {number:0100}").into()).collect();
        touched.blobs = vec![7];
        touched.answers = vec![[9; 32]];
        BTreeMap::from([(RepositoryId(1), touched)])
    }

    #[test]
    fn announcements_are_parsed_as_written() {
        let written = touched(2);
        let read = read(&write(&written)).unwrap().remove(0);
        assert_eq!((read.repository, read.first, read.last), (RepositoryId(1), 3, 5));
        assert_eq!(format!("{:?}", read.touched.unwrap()), format!("{:?}", written[&RepositoryId(1)]));
    }

    #[test]
    fn large_announcements_contain_only_revisions() {
        let text = write(&touched(10_000));
        assert!(text.len() < 100);
        let read = read(&text).unwrap().remove(0);
        assert!(read.touched.is_none() && (read.first, read.last) == (3, 5));
        assert!(super::read(b"[[1,2]]").is_none() && super::read(b"x").is_none());
    }
}
