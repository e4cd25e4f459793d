//! Parser of POMs, for display, retention and licences. It reads the name, description, address,
//! licences, dependencies, parent and imports. It replaces references to the POM's own properties
//! with their values. It does not read parents or other POMs.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use std::collections::BTreeMap;

/// Largest POM that is read, in bytes.
pub(crate) const LIMIT: u64 = 4 << 20;
/// Deepest nesting of elements that is read.
const DEPTH: usize = 64;
/// Maximum number of property references that are replaced in one value.
const ROUNDS: usize = 4;
/// Longest value, in bytes, after the replacement of properties.
const VALUE: usize = 4 << 10;

/// A licence as a POM states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PomLicence {
    pub(crate) name: String,
    pub(crate) url: String,
}

/// The content of a POM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pom {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) url: String,
    pub(crate) licences: Vec<PomLicence>,
    pub(crate) dependencies: Vec<PomDependency>,
    /// The parent POM.
    pub(crate) parent: Option<PomDependency>,
    /// POMs from which managed dependencies are imported.
    pub(crate) imports: Vec<PomDependency>,
    properties: BTreeMap<String, String>,
}

/// A dependency on another artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PomDependency {
    pub(crate) group: String,
    pub(crate) artifact: String,
    pub(crate) version: String,
    pub(crate) scope: String,
    pub(crate) optional: bool,
}

impl Pom {
    /// Reads a POM. Leaves out unreadable parts: clients receive the POM itself, so the result need
    /// not be complete.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim_start());
        reader.config_mut().expand_empty_elements = true;
        let mut builder = PomBuilder::default();
        loop {
            match reader.read_event() {
                Ok(Event::Start(start)) if builder.path.len() < DEPTH => {
                    builder.open(start.local_name().into_inner());
                }
                Ok(Event::End(_)) => builder.close(),
                Ok(Event::Text(text)) => builder.text += &text.xml10_content(),
                Ok(Event::CData(text)) => builder.text += &text.xml10_content(),
                Ok(Event::GeneralRef(reference)) => {
                    let character = reference.resolve_char_ref().ok().flatten();
                    builder.text.extend(character);
                    builder.text += resolve_xml_entity(&reference).unwrap_or_default();
                }
                // The parser stops at elements that are nested too deeply, and at a document type.
                // The latter can define entities, which this parser does not support.
                Ok(Event::Start(_) | Event::DocType(_) | Event::Eof) | Err(_) => break,
                Ok(_) => {}
            }
        }
        builder.pom.resolved()
    }

    fn resolved(mut self) -> Self {
        let properties = std::mem::take(&mut self.properties);
        let resolve = |value: &mut String| {
            for _ in 0..ROUNDS {
                let Some(filled) = filled(value, &properties) else { return };
                *value = filled;
            }
        };
        let named = self.dependencies.iter_mut().chain(&mut self.imports).chain(&mut self.parent);
        for dependency in named {
            let PomDependency { group, artifact, version, scope, .. } = dependency;
            [group, artifact, version, scope].into_iter().for_each(resolve);
        }
        [&mut self.name, &mut self.description, &mut self.url].into_iter().for_each(resolve);
        for PomLicence { name, url } in &mut self.licences {
            [name, url].into_iter().for_each(resolve);
        }
        self.properties = properties;
        self
    }
}

/// Replaces the first property in a text. `None` if the text has no property, if the property is
/// unknown, or if the result is too long.
fn filled(text: &str, properties: &BTreeMap<String, String>) -> Option<String> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    let filled = format!("{before}{}{after}", properties.get(name)?);
    (filled.len() <= VALUE).then_some(filled)
}

#[derive(Default)]
struct PomBuilder {
    path: Vec<String>,
    text: String,
    dependency: PomDependency,
    licence: PomLicence,
    pom: Pom,
}

impl PomBuilder {
    fn open(&mut self, name: &str) {
        self.path.push(name.to_owned());
        self.text.clear();
    }

    fn close(&mut self) {
        let text = self.text.trim().to_owned();
        self.text.clear();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["project", "name"] => self.pom.name = text,
            ["project", "description"] => self.pom.description = text,
            ["project", "url"] => self.pom.url = text,
            ["project", "licenses", "license", "name"] => self.licence.name = text,
            ["project", "licenses", "license", "url"] => self.licence.url = text,
            ["project", "licenses", "license"] => self.pom.licences.push(std::mem::take(&mut self.licence)),
            ["project", "parent", field @ ("groupId" | "artifactId" | "version")] => {
                let parent = self.pom.parent.get_or_insert_default();
                match *field {
                    "groupId" => parent.group.clone_from(&text),
                    "artifactId" => {
                        parent.artifact = text;
                        self.path.pop();
                        return;
                    }
                    _ => parent.version.clone_from(&text),
                }
                for of in ["project", "project.parent"] {
                    self.pom.properties.entry(format!("{of}.{field}")).or_insert(text.clone());
                }
            }
            ["project", field @ ("groupId" | "artifactId" | "version")] => {
                self.pom.properties.insert(format!("project.{field}"), text.clone());
                self.pom.properties.insert(format!("pom.{field}"), text);
            }
            ["project", "properties", name] => {
                self.pom.properties.insert((*name).to_owned(), text);
            }
            ["project", "dependencies", "dependency", field]
            | ["project", "dependencyManagement", "dependencies", "dependency", field] => {
                let dependency = &mut self.dependency;
                match *field {
                    "groupId" => dependency.group = text,
                    "artifactId" => dependency.artifact = text,
                    "version" => dependency.version = text,
                    "scope" => dependency.scope = text,
                    "optional" => dependency.optional = text == "true",
                    _ => {}
                }
            }
            ["project", "dependencies", "dependency"] => {
                self.pom.dependencies.push(std::mem::take(&mut self.dependency));
            }
            ["project", "dependencyManagement", "dependencies", "dependency"] => {
                let managed = std::mem::take(&mut self.dependency);
                if managed.scope == "import" {
                    self.pom.imports.push(managed);
                }
            }
            _ => {}
        }
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_properties_of_a_pom_are_filled_in() {
        let pom = Pom::read(
            b"<?xml version='1.0'?><project xmlns='x'><parent><groupId>org.parent</groupId><artifactId>up</artifactId><version>7</version></parent>
            <licenses><license><name>${b} MIT</name><url>https://x</url></license><license><name>B</name></license></licenses>
            <artifactId>lib</artifactId><name>Lib &amp; co</name><description><![CDATA[<b>]]></description>
            <properties><a.version>${b}</a.version><b>1.2</b></properties>
            <dependencyManagement><dependencies><dependency><groupId>no</groupId></dependency><dependency><groupId>g</groupId>
            <artifactId>bom</artifactId><version>${b}</version><type>pom</type><scope>import</scope></dependency></dependencies></dependencyManagement>
            <dependencies><dependency><groupId>${project.groupId}</groupId><artifactId>a</artifactId>
            <version>${a.version}</version><scope>test</scope><exclusions><exclusion><groupId>z</groupId></exclusion></exclusions>
            </dependency><dependency><groupId>g</groupId><artifactId>b</artifactId><version>${unknown}</version>
            <optional>true</optional></dependency></dependencies></project>",
        );
        assert_eq!((pom.name.as_str(), pom.description.as_str()), ("Lib & co", "<b>"));
        let licences: Vec<_> = pom.licences.iter().map(|one| (&*one.name, &*one.url)).collect();
        assert_eq!(licences, [("1.2 MIT", "https://x"), ("B", "")]);
        let found: Vec<_> =
            pom.dependencies.iter().map(|one| (one.group.as_str(), one.version.as_str())).collect();
        assert_eq!(found, [("org.parent", "1.2"), ("g", "${unknown}")]);
        let parent = pom.parent.unwrap();
        assert_eq!([parent.group, parent.artifact, parent.version], ["org.parent", "up", "7"]);
        let imports: Vec<_> = pom.imports.iter().map(|one| (&*one.artifact, &*one.version)).collect();
        assert_eq!(imports, [("bom", "1.2")]);
        assert_eq!((pom.dependencies[0].scope.as_str(), pom.dependencies[1].optional), ("test", true));
    }

    #[test]
    fn properties_that_refer_to_each_other_end() {
        let pom = Pom::read(
            b"<project><name>${a}</name><properties><a>${b}${b}</a><b>${a}${a}</b></properties></project>",
        );
        assert!(pom.name.len() <= VALUE);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Pom::read(&bytes);
        }
    }
}
