//! The contract's name and version, and whether a component's imports and exports fit it.

use semver::Version;

/// The package of the contract.
const PACKAGE: &str = "packhouse:format";

/// What this host offers.
pub(crate) const OFFERED: Version = Version::new(0, 1, 0);

/// Interfaces that a plugin may import.
const INTERFACES: [&str; 11] = [
    "types",
    "host",
    "http",
    "blobs",
    "records",
    "upstream",
    "releases",
    "advisories",
    "identity",
    "signing",
    "memo",
];

/// The interface that every plugin exports.
const FORMAT: &str = "format";

/// `blobs` of `packhouse:format/blobs@0.1.0`; none of another package's.
pub(crate) fn interface_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    rest.split('@').next()
}

/// Whether the operator has to allow WASI to a component with these imports.
pub(crate) fn imports_wasi(imports: &[String]) -> bool {
    imports.iter().any(|name| is_of_wasi(name))
}

fn is_of_wasi(name: &str) -> bool {
    name.starts_with("wasi:")
}

/// Why this host cannot link these imports and exports; the sentences say what is wanted and what is offered.
pub(crate) fn objections<'a>(
    imports: impl Iterator<Item = &'a str>,
    exports: impl Iterator<Item = &'a str>,
    wasi: bool,
) -> Vec<String> {
    let mut objections: Vec<String> = imports.filter_map(|name| import_objection(name, wasi)).collect();
    objections.extend(export_objection(exports));
    objections
}

fn import_objection(name: &str, wasi: bool) -> Option<String> {
    if is_of_wasi(name) {
        let how = "links WASI only for a plugin that the configuration names: `wasi = true` under [plugins.NAME], with NAME both the \
                   plugin's format and its file's name";
        return (!wasi).then(|| format!("the component wants {name}; this host {how}"));
    }
    let Some(interface) = interface_of(name) else {
        return Some(format!(
            "the component wants {name}; this host offers the interfaces of {PACKAGE}@{OFFERED} and no others"
        ));
    };
    if !fits(name) {
        return Some(format!("the component wants {name}; this host offers {OFFERED}"));
    }
    if !INTERFACES.contains(&interface) {
        return Some(format!(
            "the component wants {name}; this host offers no interface of that name, but {}",
            INTERFACES.join(", ")
        ));
    }
    None
}

fn export_objection<'a>(exports: impl Iterator<Item = &'a str>) -> Option<String> {
    let wanted = format!("{PACKAGE}/{FORMAT}@{OFFERED}");
    let mut found = Vec::new();
    for name in exports {
        if interface_of(name) == Some(FORMAT) && fits(name) {
            return None;
        }
        found.push(name);
    }
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    Some(format!("the component does not export {wanted}, but {found}"))
}

/// Whether the version in the name is one that this host's stands for: the same but for the last number while the first is 0.
/// A later last number may want a function that is not here; linking tells.
fn fits(name: &str) -> bool {
    let Some(version) = name.split_once('@').and_then(|(_, version)| Version::parse(version).ok()) else {
        return false;
    };
    version.major == OFFERED.major && version.minor == OFFERED.minor && version.pre.is_empty()
}

/// The export of this interface, in whichever fitting version it is.
pub(crate) fn exports<'a>(mut exports: impl Iterator<Item = &'a str>, interface: &str) -> bool {
    exports.any(|name| interface_of(name) == Some(interface) && fits(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [&str; 1] = ["packhouse:format/format@0.1.0"];

    fn objection(import: &str) -> Option<String> {
        objections([import].into_iter(), GOOD.into_iter(), false).pop()
    }

    #[test]
    fn what_is_offered_fits() {
        for import in ["packhouse:format/blobs@0.1.0", "packhouse:format/types@0.1.7"] {
            assert_eq!(objection(import), None, "{import}");
        }
    }

    #[test]
    fn what_is_not_offered_is_told_with_both_versions() {
        let told = objection("packhouse:format/blobs@0.2.0").unwrap();
        assert_eq!(told, "the component wants packhouse:format/blobs@0.2.0; this host offers 0.1.0");
        assert!(objection("packhouse:format/weather@0.1.0").unwrap().contains("no interface of that name"));
        let told = objection("wasi:cli/environment@0.2.6").unwrap();
        assert!(told.starts_with("the component wants wasi:") && told.contains("wasi = true"), "{told}");
        assert!(objection("acme:thing/x@1.0.0").unwrap().contains("and no others"));
    }

    #[test]
    fn a_component_of_another_kind_is_told_apart() {
        let told = objections([].into_iter(), ["wasi:cli/run@0.2.0"].into_iter(), false);
        assert_eq!(
            told,
            ["the component does not export packhouse:format/format@0.1.0, but wasi:cli/run@0.2.0"]
        );
        assert_eq!(objections([].into_iter(), GOOD.into_iter(), false), Vec::<String>::new());
    }
}
