//! A table as a file: how `packhouse plugins test` gets the rows that a test ran natively, to run them through the component as well, and
//! what is written by hand for formats in other languages than Rust.

use crate::case::Case;
use crate::request::{Form, TestRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The variable that names a folder for the tables that [`run`](crate::run) runs.
const FOLDER: &str = "PACKHOUSE_KEEP_TABLES";

/// A table, and the repository that its rows run in: a hosted one, empty at first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// The repository's name.
    #[serde(default = "releases")]
    pub repository: String,
    /// The repository's settings, as far as they are not the format's defaults.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// The rows, in their order.
    #[serde(with = "rows")]
    pub cases: Vec<Case>,
}

/// The rows as they stand in a file.
mod rows {
    use super::{Case, Row};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(cases: &[Case], to: S) -> Result<S::Ok, S::Error> {
        cases.iter().cloned().map(Row::from).collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Case>, D::Error> {
        Vec::<Row>::deserialize(from)?
            .into_iter()
            .map(|row| Case::try_from(row).map_err(D::Error::custom))
            .collect()
    }
}

fn releases() -> String {
    "releases".to_owned()
}

impl Table {
    /// The table in a JSON document.
    ///
    /// # Errors
    /// What of it is no table, and where.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Writes it into the folder that `packhouse plugins test` named, if it did, under the name of the test that runs.
    pub(crate) fn keep(mut self) {
        static KEPT: AtomicUsize = AtomicUsize::new(0);
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        self.name = std::thread::current().name().unwrap_or("a table").to_owned();
        let number = KEPT.fetch_add(1, Ordering::Relaxed);
        let file = Path::new(&folder).join(format!("{}-{number:03}.json", std::process::id()));
        let text = serde_json::to_string(&self).unwrap_or_default();
        let written = std::fs::write(&file, text);
        assert!(written.is_ok(), "{FOLDER}: {} cannot be written: {written:?}", file.display());
    }
}

/// A row as it stands in a file. Bodies and contents that are no text are in base64.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    name: String,
    /// Method and target, as `PUT /a/b.txt`.
    request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<String>,
    /// Header fields to send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    with: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Bytes>,
    /// A form's fields, in place of a body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    /// What must come back.
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    header: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    no_header: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contains: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lacks: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filename: Option<String>,
    value: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Other { base64: String },
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        use base64::Engine as _;
        let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        String::from_utf8(bytes)
            .map_or_else(|error| Self::Other { base64: encode(error.as_bytes()) }, Self::Text)
    }
}

impl Bytes {
    fn decoded(self) -> Result<Vec<u8>, String> {
        use base64::Engine as _;
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Other { base64 } => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(&base64);
                decoded.map_err(|error| format!("{base64:?} is not base64: {error}"))
            }
        }
    }
}

impl From<Case> for Row {
    fn from(case: Case) -> Self {
        let TestRequest { method, target, claim, headers, body, parts, .. } = case.request;
        let part = |Form { name, filename, value }| Part { name, filename, value: value.into() };
        Self {
            name: case.name,
            request: format!("{method} {target}"),
            claim,
            with: headers,
            body: Some(body).filter(|body| !body.is_empty()).map(Bytes::from),
            parts: parts.into_iter().map(part).collect(),
            status: case.status,
            code: case.code,
            header: case.headers,
            no_header: case.absent,
            content: case.body.map(Bytes::from),
            contains: case.contains,
            lacks: case.lacks,
        }
    }
}

impl TryFrom<Row> for Case {
    type Error = String;

    fn try_from(row: Row) -> Result<Self, String> {
        let fits = row.request.split_once(' ').filter(|(_, target)| target.starts_with('/'));
        let Some((method, target)) = fits else {
            return Err(format!(
                "a request is a method and a path, as in \"PUT /a/b.txt\", not {:?}",
                row.request
            ));
        };
        let part = |Part { name, filename, value }| {
            Ok::<_, String>(Form { name, filename, value: value.decoded()? })
        };
        let request = TestRequest {
            claim: row.claim,
            headers: row.with,
            body: row.body.map(Bytes::decoded).transpose()?.unwrap_or_default(),
            parts: row.parts.into_iter().map(part).collect::<Result<_, _>>()?,
            ..TestRequest::new(method, target)
        };
        Ok(Self {
            name: row.name,
            request,
            status: row.status,
            code: row.code,
            headers: row.header,
            absent: row.no_header,
            body: row.content.map(Bytes::decoded).transpose()?,
            contains: row.contains,
            lacks: row.lacks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was() {
        let cases = vec![
            Case::new("all of it", "PUT", "/a%20b?c=d", 409)
                .claim("root")
                .with("accept", "x")
                .body("text")
                .code("gone")
                .header("etag", "y")
                .no_header("age")
                .content([255, 0])
                .contains("a")
                .lacks("b"),
            Case::new("a form", "POST", "/", 200)
                .part("file", Some("a.bin"), [200, 1])
                .part("name", None, "x"),
            Case::new("little", "GET", "/", 200),
        ];
        let table = Table { name: "one".into(), repository: "r".into(), settings: Map::new(), cases };
        let read = Table::read(&serde_json::to_string(&table).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{table:?}"));
    }

    #[test]
    fn what_is_written_by_hand_may_be_short_and_what_is_wrong_is_told() {
        let table = Table::read(r#"{"cases": [{"name": "a", "request": "GET /a", "status": 404}]}"#).unwrap();
        assert_eq!((table.repository.as_str(), table.cases.len()), ("releases", 1));
        for (text, said) in [
            (r#"{"cases": [{"name": "a", "request": "GET a", "status": 404}]}"#, "a method and a path"),
            (r#"{"cases": [{"name": "a", "request": "GET /a", "stats": 404}]}"#, "unknown field `stats`"),
            (r#"{"cases": [{"name": "a", "request": "GET /a"}]}"#, "missing field `status`"),
        ] {
            let error = Table::read(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
