//! What commits touched, as one server tells it to the others: a JSON list of repositories, each with its number, the first and the
//! last revision, and where it is not too much the records, packages, rows of blobs and cached answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::log::Touched;
use crate::ids::{CacheName, RepositoryId};

/// Above so many bytes only the revisions are told: whoever reads it knows nothing of what the commits touched.
const MOST: usize = 256 * 1024;

/// As it is told.
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

/// What was told of one repository.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) repository: RepositoryId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// None when it was too much to tell.
    pub(crate) touched: Option<Touched>,
}

/// Reads it; none when it is not understood, so that nothing is known.
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
    fn what_is_told_is_read_again() {
        let written = touched(2);
        let read = read(&write(&written)).unwrap().remove(0);
        assert_eq!((read.repository, read.first, read.last), (RepositoryId(1), 3, 5));
        assert_eq!(format!("{:?}", read.touched.unwrap()), format!("{:?}", written[&RepositoryId(1)]));
    }

    #[test]
    fn too_much_is_told_as_revisions_alone() {
        let text = write(&touched(10_000));
        assert!(text.len() < 100);
        let read = read(&text).unwrap().remove(0);
        assert!(read.touched.is_none() && (read.first, read.last) == (3, 5));
        assert!(super::read(b"[[1,2]]").is_none() && super::read(b"x").is_none());
    }
}
