//! Tables as files. A test in Rust stores the rows that it runs, and `packhouse plugins test` runs
//! them through the component as well. Authors who use other languages write such tables by hand.

use crate::case::Case;
use crate::request::{Form, TestRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Environment variable with the folder in which [`run`](crate::run) stores the tables that it
/// runs.
const FOLDER: &str = "PACKHOUSE_KEEP_TABLES";

/// Table with the repository in which its rows run: a hosted one, initially empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name of the table.
    #[serde(default)]
    pub name: String,
    /// Name of the repository.
    #[serde(default = "releases")]
    pub repository: String,
    /// Settings of the repository that differ from the format's defaults.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// Rows in their order.
    #[serde(with = "rows")]
    pub cases: Vec<Case>,
}

/// Serialization of rows in a file.
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
    /// Parses the table in a JSON document.
    ///
    /// # Errors
    /// A text that says what is wrong with the document, and where.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Writes the table, under the name of the running test, into the folder that `packhouse
    /// plugins test` set. Does nothing without this folder.
    pub(crate) fn store(mut self) {
        static STORED: AtomicUsize = AtomicUsize::new(0);
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        self.name = std::thread::current().name().unwrap_or("a table").to_owned();
        let number = STORED.fetch_add(1, Ordering::Relaxed);
        let file = Path::new(&folder).join(format!("{}-{number:03}.json", std::process::id()));
        let text = serde_json::to_string(&self).unwrap_or_default();
        let written = std::fs::write(&file, text);
        assert!(written.is_ok(), "{FOLDER}: {} cannot be written: {written:?}", file.display());
    }
}

/// Row in a file. Bodies and contents that are not text are in base64.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    name: String,
    /// Method and target, for example `PUT /a/b.txt`.
    request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<String>,
    /// Header fields to send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    with: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Bytes>,
    /// Form fields, instead of a body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    /// Expected status.
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
    fn a_row_can_be_written_and_read_again() {
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
    fn a_handwritten_table_may_be_short_and_errors_say_what_is_wrong() {
        let table = Table::read(r#"{"cases": [{"name": "a", "request": "GET /a", "status": 404}]}"#).unwrap();
        assert_eq!((table.repository.as_str(), table.cases.len()), ("releases", 1));
        for (text, message) in [
            (r#"{"cases": [{"name": "a", "request": "GET a", "status": 404}]}"#, "a method and a path"),
            (r#"{"cases": [{"name": "a", "request": "GET /a", "stats": 404}]}"#, "unknown field `stats`"),
            (r#"{"cases": [{"name": "a", "request": "GET /a"}]}"#, "missing field `status`"),
        ] {
            let error = Table::read(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
