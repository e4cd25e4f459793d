//! Parser of `maven-metadata.xml`. A client's document must not have a document type, entities
//! other than XML's own, or deeply nested elements. The parser reads an upstream's document like
//! Maven's own reader.

use super::{MavenMetadata, MavenPlugin, SnapshotFile};
use crate::version::is_possible;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, Event};
use std::borrow::Cow;

/// Deepest nesting of elements; Maven's own documents have five levels.
const DEPTH: usize = 16;

/// The reason why a document is not valid metadata, as text for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadMetadata(pub(crate) String);

/// Strictness of the parser.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Strict,
    /// Document types are ignored, and the text of unknown entities stays as it is.
    Lenient,
}

impl MavenMetadata {
    /// Reads a document that a client uploaded. Unknown elements are skipped.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BadMetadata> {
        let text = std::str::from_utf8(bytes).map_err(|_| bad("it is not UTF-8"))?;
        read(text, Reading::Strict)
    }

    /// Reads a document of an upstream, in UTF-8, UTF-16 or Latin-1. Leaves out versions that no
    /// artifact can have.
    pub(crate) fn read_upstream(bytes: &[u8]) -> Result<Self, BadMetadata> {
        let mut metadata = read(&decoded(bytes), Reading::Lenient)?;
        let listed = metadata.versions.len();
        metadata.versions.retain(|version| is_possible(version));
        metadata.left_out = listed - metadata.versions.len();
        for version in [&mut metadata.latest, &mut metadata.release] {
            *version = version.take().filter(|version| is_possible(version));
        }
        Ok(metadata)
    }
}

/// Decodes UTF-16 with a byte order mark, UTF-8, or else Latin-1. The declaration of the document
/// is ignored.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        String::from_utf16_lossy(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>()).into()
    };
    match (bytes, std::str::from_utf8(bytes)) {
        ([0xff, 0xfe, ..], _) => utf16(u16::from_le_bytes),
        ([0xfe, 0xff, ..], _) => utf16(u16::from_be_bytes),
        (_, Ok(text)) => text.into(),
        _ => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

fn read(text: &str, reading: Reading) -> Result<MavenMetadata, BadMetadata> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim_start());
    reader.config_mut().expand_empty_elements = true;
    let mut builder = MetadataBuilder::default();
    loop {
        let event = reader.read_event().map_err(|error| bad(format!("it is not XML: {error}")))?;
        match event {
            Event::Start(start) => builder.open(start.local_name().into_inner())?,
            Event::End(_) => builder.close(),
            Event::Text(text) => builder.text(&text.xml10_content())?,
            Event::CData(text) => builder.text(&text.xml10_content())?,
            Event::GeneralRef(reference) => match resolve(&reference) {
                Err(_) if reading == Reading::Lenient => builder.text(&format!("&{};", &*reference))?,
                resolved => builder.text(&resolved?)?,
            },
            Event::DocType(_) if reading == Reading::Strict => {
                return Err(bad("it has a document type, which is not allowed"));
            }
            Event::Eof => return builder.finish(),
            Event::Empty(_) | Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::DocType(_) => {}
        }
    }
}

/// State of the parser: the path of the open elements, and the content so far.
#[derive(Default)]
struct MetadataBuilder {
    path: Vec<String>,
    text: String,
    has_root: bool,
    file: SnapshotFile,
    plugin: MavenPlugin,
    metadata: MavenMetadata,
}

impl MetadataBuilder {
    fn open(&mut self, name: &str) -> Result<(), BadMetadata> {
        if self.path.is_empty() && (self.has_root || name != "metadata") {
            return Err(bad("its root is not a single `metadata` element"));
        }
        if self.path.len() >= DEPTH {
            return Err(bad(format!("its elements are nested more than {DEPTH} levels deep")));
        }
        self.has_root = true;
        self.path.push(name.to_owned());
        self.text.clear();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), BadMetadata> {
        if self.path.is_empty() && !text.trim().is_empty() {
            return Err(bad("it has text outside of its root element"));
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Stores the text of the element that ends here. The path of the element selects the field.
    fn close(&mut self) {
        let text = self.text.trim().to_owned();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let metadata = &mut self.metadata;
        match path.get(1..).unwrap_or_default() {
            ["groupId"] => metadata.group = some(text),
            ["artifactId"] => metadata.artifact = some(text),
            ["version"] => metadata.version = some(text),
            ["versioning", "latest"] => metadata.latest = some(text),
            ["versioning", "release"] => metadata.release = some(text),
            ["versioning", "lastUpdated"] => metadata.updated = some(text),
            ["versioning", "versions", "version"] => metadata.versions.extend(some(text)),
            ["versioning", "snapshot", "timestamp"] => metadata.timestamp = some(text),
            ["versioning", "snapshot", "buildNumber"] => metadata.build = some(text),
            ["versioning", "snapshotVersions", "snapshotVersion"] => {
                metadata.files.push(std::mem::take(&mut self.file));
            }
            ["versioning", "snapshotVersions", "snapshotVersion", field] => match *field {
                "classifier" => self.file.classifier = text,
                "extension" => self.file.extension = text,
                "value" => self.file.value = text,
                "updated" => self.file.updated = text,
                _ => {}
            },
            ["plugins", "plugin"] => metadata.plugins.push(std::mem::take(&mut self.plugin)),
            ["plugins", "plugin", field] => match *field {
                "name" => self.plugin.name = some(text),
                "prefix" => self.plugin.prefix = text,
                "artifactId" => self.plugin.artifact = text,
                _ => {}
            },
            _ => {}
        }
        self.path.pop();
        self.text.clear();
    }

    fn finish(self) -> Result<MavenMetadata, BadMetadata> {
        if self.has_root && self.path.is_empty() {
            Ok(self.metadata)
        } else {
            Err(bad("it ends before its root element does"))
        }
    }
}

/// Resolves a character or entity reference.
fn resolve(reference: &BytesRef<'_>) -> Result<String, BadMetadata> {
    let unknown = || bad(format!("it uses the entity `&{};`, which XML does not define", &**reference));
    match reference.resolve_char_ref() {
        Ok(Some(c)) => Ok(c.to_string()),
        Ok(None) => resolve_xml_entity(reference).map(str::to_owned).ok_or_else(unknown),
        Err(_) => Err(unknown()),
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn bad(text: impl Into<String>) -> BadMetadata {
    BadMetadata(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The document of an artifact as `mvn deploy` writes it.
    const ARTIFACT: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata>\n  <groupId>org.example</groupId>\n  \
        <artifactId>lib</artifactId>\n  <versioning>\n    <release>1.1</release>\n    <versions>\n      \
        <version>1.0</version>\n      <version>1.1</version>\n    </versions>\n    \
        <lastUpdated>20261121050140</lastUpdated>\n  </versioning>\n</metadata>\n";

    fn refused(document: &str) -> String {
        MavenMetadata::read(document.as_bytes()).unwrap_err().0
    }

    #[test]
    fn an_artifacts_document_is_read() {
        let read = MavenMetadata::read(ARTIFACT.as_bytes()).unwrap();
        assert_eq!(read.group.as_deref(), Some("org.example"));
        assert_eq!(read.versions, ["1.0", "1.1"]);
        assert_eq!((read.release.as_deref(), read.latest), (Some("1.1"), None));
        assert_eq!(
            MavenMetadata::read(format!("\u{feff}{ARTIFACT}").as_bytes()).unwrap().versions,
            read.versions
        );
    }

    #[test]
    fn a_snapshots_document_is_read() {
        let document = "<metadata modelVersion='1.1.0'><version>2-SNAPSHOT</version><versioning><snapshot>\
            <timestamp>20261121.050140</timestamp><buildNumber>2</buildNumber></snapshot><snapshotVersions>\
            <snapshotVersion><classifier>sources</classifier><extension>jar</extension><value>2-x</value><updated>1</updated>\
            </snapshotVersion><snapshotVersion><extension>pom</extension><value>2-y</value></snapshotVersion>\
            </snapshotVersions></versioning></metadata>";
        let read = MavenMetadata::read(document.as_bytes()).unwrap();
        assert_eq!((read.timestamp.as_deref(), read.build.as_deref()), (Some("20261121.050140"), Some("2")));
        let files: Vec<_> =
            read.files.iter().map(|file| (&*file.classifier, &*file.extension, &*file.value)).collect();
        assert_eq!(files, [("sources", "jar", "2-x"), ("", "pom", "2-y")]);
    }

    #[test]
    fn references_and_cdata_are_text() {
        let read = |name: &str| {
            let document =
                format!("<metadata><plugins><plugin><name>{name}</name></plugin></plugins></metadata>");
            MavenMetadata::read(document.as_bytes()).map(|metadata| metadata.plugins[0].name.clone().unwrap())
        };
        assert_eq!(read("A &amp; B&#x21; <![CDATA[<c>]]>").unwrap(), "A & B! <c>");
        assert!(read("&xxe;").unwrap_err().0.contains("`&xxe;`"));
    }

    #[test]
    fn an_upstreams_document_is_read_as_maven_reads_it() {
        let versions = |bytes: &[u8]| MavenMetadata::read_upstream(bytes).map(|metadata| metadata.versions);
        let document = |before: &str, name: &str| {
            format!(
                "{before}<metadata><versioning><versions><version>1.0</version><version>1.1</version>\
                 </versions></versioning><plugins><plugin><name>{name}</name></plugin></plugins></metadata>"
            )
        };
        let latin1: Vec<u8> = document("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>", "é")
            .chars()
            .map(|c| c as u8)
            .collect();
        let utf16: Vec<u8> = document("\u{feff}", "é").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let doctype = document("<!DOCTYPE metadata [<!ENTITY x 'y'>]>", "&x;").into_bytes();
        let entity = document("", "caf&eacute;").into_bytes();
        for bytes in [&latin1, &utf16, &doctype, &entity] {
            assert_eq!(versions(bytes).unwrap(), ["1.0", "1.1"], "{}", String::from_utf8_lossy(bytes));
        }
        let read = MavenMetadata::read_upstream(&latin1).unwrap();
        assert_eq!(read.plugins[0].name.as_deref(), Some("é"));
        let odd = ARTIFACT.replace("1.0</version>", "${project.version}</version>");
        let odd = odd.replace("1.1</version>", "1.1</version><version>3/4</version>");
        assert_eq!(versions(odd.as_bytes()).unwrap(), ["1.1"]);
        for broken in ["", "<html><body>Sign in</body></html>", "<metadata><versioning>"] {
            assert!(versions(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn invalid_metadata_is_refused() {
        assert!(refused("<!DOCTYPE metadata [<!ENTITY x 'y'>]><metadata/>").contains("document type"));
        assert!(refused("<project/>").contains("root"));
        assert!(refused("<metadata/><metadata/>").contains("root"));
        assert!(refused("").contains("ends before"));
        assert!(refused("<metadata>").contains("ends before"));
        assert!(refused("<metadata></project>").contains("not XML"));
        assert!(refused("hello").contains("outside"));
        assert!(refused(&format!("<metadata>{}", "<a>".repeat(20))).contains("deep"));
        assert!(MavenMetadata::read(b"\xff\xfe").unwrap_err().0.contains("UTF-8"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = MavenMetadata::read(&bytes);
            let _ = MavenMetadata::read_upstream(&bytes);
        }

        #[test]
        fn any_markup_is_read(parts in prop::collection::vec(
            prop::sample::select(vec![
                "<metadata>", "</metadata>", "<versioning>", "</versioning>", "<versions>", "<version>", "</version>", "<a/>",
                "&amp;", "&#1;", "&#xffffffff;", "&x;", "]]>", "<![CDATA[", "<!--", "-->", "<?x?>", "<!DOCTYPE x>", "1.0", "<",
            ]), 0..20,
        )) {
            let _ = MavenMetadata::read(parts.concat().as_bytes());
        }
    }
}
