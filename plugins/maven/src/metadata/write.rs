//! Writer of `maven-metadata.xml` in Maven's style. The same content always gives the same bytes.

use super::{MavenMetadata, MavenPlugin, SnapshotFile};
use quick_xml::escape::escape;

impl MavenMetadata {
    /// Renders the document with an indentation of two spaces and a newline at its end.
    pub(crate) fn write(&self) -> String {
        let mut xml = Xml::default();
        // Maven sets this attribute on documents that list the files of a snapshot.
        let root = if self.files.is_empty() { "metadata" } else { "metadata modelVersion=\"1.1.0\"" };
        xml.inside(root, |xml| {
            xml.leaf("groupId", self.group.as_deref());
            xml.leaf("artifactId", self.artifact.as_deref());
            xml.leaf("version", self.version.as_deref());
            if self.has_versioning() {
                xml.inside("versioning", |xml| self.write_versioning(xml));
            }
            if !self.plugins.is_empty() {
                xml.inside("plugins", |xml| self.plugins.iter().for_each(|plugin| write_plugin(plugin, xml)));
            }
        });
        xml.text
    }

    fn has_versioning(&self) -> bool {
        self.updated.is_some() || !self.versions.is_empty() || !self.files.is_empty()
    }

    fn write_versioning(&self, xml: &mut Xml) {
        xml.leaf("latest", self.latest.as_deref());
        xml.leaf("release", self.release.as_deref());
        if self.timestamp.is_some() || self.build.is_some() {
            xml.inside("snapshot", |xml| {
                xml.leaf("timestamp", self.timestamp.as_deref());
                xml.leaf("buildNumber", self.build.as_deref());
            });
        }
        if !self.versions.is_empty() {
            xml.inside("versions", |xml| {
                self.versions.iter().for_each(|version| xml.leaf("version", Some(version)))
            });
        }
        xml.leaf("lastUpdated", self.updated.as_deref());
        if !self.files.is_empty() {
            xml.inside("snapshotVersions", |xml| self.files.iter().for_each(|file| write_file(file, xml)));
        }
    }
}

fn write_file(file: &SnapshotFile, xml: &mut Xml) {
    xml.inside("snapshotVersion", |xml| {
        xml.leaf("classifier", Some(&file.classifier).filter(|text| !text.is_empty()).map(String::as_str));
        xml.leaf("extension", Some(&file.extension));
        xml.leaf("value", Some(&file.value));
        xml.leaf("updated", Some(&file.updated).filter(|text| !text.is_empty()).map(String::as_str));
    });
}

fn write_plugin(plugin: &MavenPlugin, xml: &mut Xml) {
    xml.inside("plugin", |xml| {
        xml.leaf("name", plugin.name.as_deref());
        xml.leaf("prefix", Some(&plugin.prefix));
        xml.leaf("artifactId", Some(&plugin.artifact));
    });
}

/// A document that is being written.
struct Xml {
    text: String,
    depth: usize,
}

impl Default for Xml {
    fn default() -> Self {
        Self { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(), depth: 0 }
    }
}

impl Xml {
    /// Writes an element with child elements. `tag` may contain attributes.
    fn inside(&mut self, tag: &str, fill: impl FnOnce(&mut Self)) {
        let name = tag.split(' ').next().unwrap_or_default();
        self.line(&format!("<{tag}>"));
        self.depth += 1;
        fill(self);
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }

    /// Writes an element with this text, or nothing if there is no text.
    fn leaf(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.line(&format!("<{name}>{}</{name}>", escape(text)));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_document_of_an_artifact_looks_like_mavens() {
        let metadata = MavenMetadata {
            group: Some("org.example".into()),
            artifact: Some("lib".into()),
            latest: Some("1.1-SNAPSHOT".into()),
            release: Some("1.0".into()),
            versions: vec!["1.0".into(), "1.1-SNAPSHOT".into()],
            updated: Some("20261121050140".into()),
            ..MavenMetadata::default()
        };
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata>\n  <groupId>org.example</groupId>\n  \
            <artifactId>lib</artifactId>\n  <versioning>\n    <latest>1.1-SNAPSHOT</latest>\n    <release>1.0</release>\n    \
            <versions>\n      <version>1.0</version>\n      <version>1.1-SNAPSHOT</version>\n    </versions>\n    \
            <lastUpdated>20261121050140</lastUpdated>\n  </versioning>\n</metadata>\n";
        assert_eq!(metadata.write(), expected);
    }

    prop_compose! {
        fn file()(classifier in "[a-z&<]{0,4}", extension in "[a-z.]{1,6}", value in "[0-9a-z.-]{1,8}", updated in "[0-9]{0,4}")
            -> SnapshotFile { SnapshotFile { classifier, extension, value, updated } }
    }

    prop_compose! {
        fn plugin()(name in prop::option::of("[A-Za-z&<>'\"]{1,8}"), prefix in "[a-z]{1,5}", artifact in "[a-z-]{1,9}") -> MavenPlugin {
            MavenPlugin { name, prefix, artifact }
        }
    }

    prop_compose! {
        fn metadata()(
            group in prop::option::of("[a-zé.]{1,9}"), version in prop::option::of("[0-9a-z]{1,5}"),
            versions in prop::collection::vec("[0-9a-z.<&>-]{1,8}", 0..5), timestamp in prop::option::of("[0-9.]{1,15}"),
            files in prop::collection::vec(file(), 0..3), plugins in prop::collection::vec(plugin(), 0..3),
        ) -> MavenMetadata {
            let release = versions.first().cloned();
            let updated = Some("20261121050140".to_owned());
            let build = timestamp.as_ref().map(|_| "7".to_owned());
            MavenMetadata { artifact: group.clone(), latest: None, group, version, release, versions, timestamp, build, files, plugins, updated, left_out: 0 }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(metadata in metadata()) {
            let written = metadata.write();
            let read = MavenMetadata::read(written.as_bytes()).unwrap();
            prop_assert_eq!(&read, &metadata);
            prop_assert!(read.agrees_with(&metadata));
        }
    }
}
