//! Documents in a folder: YAML files with the fields `kind`, `name` and `spec`.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::canonical::canonical;
use super::kinds::DocumentKind;
use super::specs::{
    PolicySpec, RepositorySpec, RetentionPolicySpec, ServiceAccountSpec, TeamSpec, TrustedPublisherSpec,
    WebhookSpec,
};

/// Maximum size of a file, in bytes.
const FILE_BYTES: u64 = 16 << 20;
/// Maximum number of documents in a file.
const FILE_DOCUMENTS: usize = 10_000;

/// Document with the place where it stands.
#[derive(Clone, Debug)]
pub(super) struct ConfigDocument {
    pub(super) kind: DocumentKind,
    pub(super) name: String,
    /// The spec in its canonical form, without fields that the API cannot return.
    pub(super) spec: Map<String, Value>,
    /// File and line, such as `teams.yaml:4`.
    pub(super) place: String,
    /// Credentials of a proxy, with references to secrets.
    pub(super) credentials: Option<Value>,
    /// File for the secret of a new webhook.
    pub(super) secret_file: Option<PathBuf>,
}

/// Reads all documents of a folder, in the order of the file names. The error lists the first
/// problem of each file.
pub(super) fn read_folder(folder: &Path) -> anyhow::Result<Vec<ConfigDocument>> {
    let failed = || format!("failed to read the folder {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        files.push(entry.with_context(failed)?.path());
    }
    let is_document = |file: &PathBuf| file.extension().is_some_and(|end| end == "yaml" || end == "yml");
    files.retain(is_document);
    files.sort();
    ensure!(!files.is_empty(), "the folder {} has no file whose name ends with .yaml", folder.display());
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match read_file(&file).and_then(|text| parse(&name, &text)) {
            Ok(found) => documents.extend(found),
            Err(problem) => problems.push(format!("{problem:#}")),
        }
    }
    if !problems.is_empty() {
        bail!("nothing was changed: {}", problems.join("\n"));
    }
    Ok(documents)
}

fn read_file(file: &Path) -> anyhow::Result<String> {
    let failed = || format!("failed to read {}", file.display());
    let size = std::fs::metadata(file).with_context(failed)?.len();
    ensure!(size <= FILE_BYTES, "{} is larger than {FILE_BYTES} bytes", file.display());
    std::fs::read_to_string(file).with_context(failed)
}

/// Parses the documents of a file. The error names the file and the line.
pub(super) fn parse(file: &str, text: &str) -> anyhow::Result<Vec<ConfigDocument>> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_documents: FILE_DOCUMENTS },
        with_snippet: false,
        strict_booleans: true,
    };
    let parsed: Vec<ParsedDocument> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    Ok(parsed.into_iter().map(|parsed| parsed.finish(file)).collect())
}

/// Document as it is in the file.
struct ParsedDocument {
    kind: DocumentKind,
    name: String,
    spec: Map<String, Value>,
    line: u64,
}

impl ParsedDocument {
    fn finish(self, file: &str) -> ConfigDocument {
        let ParsedDocument { kind, name, mut spec, line } = self;
        let upstream = spec.get_mut("upstream").and_then(Value::as_object_mut);
        let credentials = upstream.and_then(|upstream| upstream.remove("credentials"));
        let secret_file = spec.remove("secret_file");
        ConfigDocument {
            kind,
            name,
            spec: canonical(kind, spec),
            place: format!("{file}:{line}"),
            credentials,
            secret_file: secret_file.as_ref().and_then(Value::as_str).map(PathBuf::from),
        }
    }
}

const FIELDS: &[&str] = &["kind", "name", "spec"];

impl<'de> Deserialize<'de> for ParsedDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ParsedDocument, D::Error> {
        deserializer.deserialize_struct("ParsedDocument", FIELDS, DocumentVisitor)
    }
}

/// Visitor that reads the `spec` as the type of the `kind` before it, so that errors have the line
/// of the wrong field.
struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = ParsedDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document with the fields `kind`, `name` and `spec`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParsedDocument, A::Error> {
        let (mut kind, mut name, mut spec, mut line) = (None, None, None, 0);
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "kind" => {
                    let found: Spanned<String> = map.next_value()?;
                    line = found.referenced.line();
                    let found = DocumentKind::of(&found.value);
                    kind =
                        Some(found.map_err(|problem| A::Error::custom(format!("line {line}: {problem}")))?);
                }
                "name" => name = Some(map.next_value::<String>()?),
                "spec" => {
                    let kind = kind.ok_or_else(|| {
                        A::Error::custom("a document has `spec` before `kind`; write `kind` first")
                    })?;
                    spec = Some(read_spec(kind, &mut map)?);
                }
                other => return Err(A::Error::unknown_field(other, FIELDS)),
            }
        }
        Ok(ParsedDocument {
            kind: kind.ok_or_else(|| A::Error::missing_field("kind"))?,
            name: name.ok_or_else(|| A::Error::missing_field("name"))?,
            spec: spec.ok_or_else(|| A::Error::missing_field("spec"))?,
            line,
        })
    }
}

fn read_spec<'de, A: MapAccess<'de>>(
    kind: DocumentKind,
    map: &mut A,
) -> Result<Map<String, Value>, A::Error> {
    match kind {
        DocumentKind::Repository => read::<RepositorySpec, A>(map),
        DocumentKind::Team => read::<TeamSpec, A>(map),
        DocumentKind::ServiceAccount => read::<ServiceAccountSpec, A>(map),
        DocumentKind::TrustedPublisher => read::<TrustedPublisherSpec, A>(map),
        DocumentKind::Policy => read::<PolicySpec, A>(map),
        DocumentKind::RetentionPolicy => read::<RetentionPolicySpec, A>(map),
        DocumentKind::Webhook => read::<WebhookSpec, A>(map),
    }
}

/// Reads a spec with the checks of its type. The result has only the fields that are given.
fn read<'de, T, A>(map: &mut A) -> Result<Map<String, Value>, A::Error>
where
    T: Deserialize<'de> + Serialize,
    A: MapAccess<'de>,
{
    match serde_json::to_value(map.next_value::<T>()?) {
        Ok(Value::Object(spec)) => Ok(spec),
        Ok(_) => Err(A::Error::custom("`spec` must be an object")),
        Err(error) => Err(A::Error::custom(error)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEAMS: &str = "\
# Comment
kind: Team
name: release
spec:
  permissions:
    organization: [manage-members]
    repositories:
      - repository: libs
        actions: [publish, read]
  members: [B@example.com, ci]
---
kind: Repository
name: outside
spec:
  format: fifth
  kind: proxy
  upstream:
    url: https://repo.example
    credentials: {username: me, password: {from_env: SECRET}}
  settings: {offline: false, quota_bytes: 5}
";

    fn problem(text: &str) -> String {
        format!("{:#}", parse("a.yaml", text).unwrap_err())
    }

    #[test]
    fn documents_are_read_with_their_places() {
        let documents = parse("a.yaml", TEAMS).unwrap();
        let places: Vec<&str> = documents.iter().map(|document| document.place.as_str()).collect();
        assert_eq!(places, ["a.yaml:2", "a.yaml:12"]);
        assert_eq!(documents[0].kind, DocumentKind::Team);
        assert_eq!(documents[0].spec["members"], json!(["b@example.com", "ci"]));
        assert!(!documents[0].spec.contains_key("description"));
        let credentials = documents[1].credentials.as_ref().unwrap();
        assert_eq!(credentials["password"], json!({"from_env": "SECRET"}));
        assert_eq!(documents[1].spec["upstream"], json!({"url": "https://repo.example/"}));
        assert_eq!(documents[1].spec["settings"], json!({"offline": false, "quota_bytes": 5}));
    }

    #[test]
    fn a_wrong_document_is_named_with_its_line() {
        let wrong = TEAMS.replace("  members:", "  colour: red\n  members:");
        let sentence = problem(&wrong);
        assert!(sentence.contains("a.yaml") && sentence.contains("`colour`"), "{sentence}");
        assert!(sentence.contains("line 10"), "{sentence}");
        let sentence = problem(&TEAMS.replace("kind: Team", "kind: Group"));
        assert!(sentence.contains("line 2") && sentence.contains("ServiceAccount"), "{sentence}");
        for (from, to, named) in [
            ("name: release\n", "", "name"),
            ("kind: Team\nname: release\n", "name: release\n", "kind"),
            ("  format: fifth\n", "", "format"),
            ("password: {from_env: SECRET}", "password: secret", "line 19"),
            ("members: [B@example.com, ci]", "members: ci", "line 10"),
            ("[publish, read]", "[publish, read]\n        action: read", "`action`"),
            ("name: release", "name: release\nname: other", "name"),
        ] {
            let sentence = problem(&TEAMS.replacen(from, to, 1));
            assert!(sentence.contains(named), "{named}: {sentence}");
        }
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_folder(folder.path()).unwrap_err().to_string().contains(".yaml"));
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("b.yaml", "kind: Team\nname: b\nspec: {}\n");
        write("a.yml", "kind: Team\nname: a\nspec: {}\n---\n# Only a comment\n");
        write("readme.txt", "nothing");
        let names: Vec<String> =
            read_folder(folder.path()).unwrap().into_iter().map(|document| document.name).collect();
        assert_eq!(names, ["a", "b"]);
        write("c.yaml", "kind: Team\n");
        write("d.yaml", "[1]\n");
        let sentence = read_folder(folder.path()).unwrap_err().to_string();
        assert!(sentence.contains("c.yaml") && sentence.contains("d.yaml"), "{sentence}");
    }
}
