//! Name and version of the contract, and checks of a component's imports and exports against it.

use semver::Version;

/// Package name of the contract.
const PACKAGE: &str = "packhouse:format";

/// Contract version that this host offers.
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

/// Interface that every plugin exports.
const FORMAT: &str = "format";

/// Returns `blobs` for `packhouse:format/blobs@0.1.0`, and none for another package's interface.
pub(crate) fn interface_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    rest.split('@').next()
}

/// Returns true if these imports include WASI, which the operator has to allow.
pub(crate) fn imports_wasi(imports: &[String]) -> bool {
    imports.iter().any(|name| is_of_wasi(name))
}

fn is_of_wasi(name: &str) -> bool {
    name.starts_with("wasi:")
}

/// Reasons why this host cannot link these imports and exports. Each sentence states a requirement
/// of the component or host, and what the host or component offers instead.
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
        let how = "links WASI only for plugins for which the configuration allows it: set `wasi = true` \
            under [plugins.NAME], where NAME is the plugin's format and its file name";
        return (!wasi).then(|| format!("the component imports {name}; this host {how}"));
    }
    let Some(interface) = interface_of(name) else {
        return Some(format!(
            "the component imports {name}; this host offers only the interfaces of {PACKAGE}@{OFFERED}"
        ));
    };
    if !fits(name) {
        return Some(format!("the component imports {name}; this host offers {OFFERED}"));
    }
    if !INTERFACES.contains(&interface) {
        return Some(format!(
            "the component imports {name}; this host has no such interface, only {}",
            INTERFACES.join(", ")
        ));
    }
    None
}

fn export_objection<'a>(exports: impl Iterator<Item = &'a str>) -> Option<String> {
    let required = format!("{PACKAGE}/{FORMAT}@{OFFERED}");
    let mut found = Vec::new();
    for name in exports {
        if interface_of(name) == Some(FORMAT) && fits(name) {
            return None;
        }
        found.push(name);
    }
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    Some(format!("the component does not export {required}; it exports {found}"))
}

/// Returns true if this host's version is compatible with the version in the name. The first two
/// numbers must be equal. A later third number may require a function that this host lacks; linking
/// detects that.
fn fits(name: &str) -> bool {
    let Some(version) = name.split_once('@').and_then(|(_, version)| Version::parse(version).ok()) else {
        return false;
    };
    version.major == OFFERED.major && version.minor == OFFERED.minor && version.pre.is_empty()
}

/// Returns true if this interface is exported in a compatible version.
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
    fn offered_interfaces_are_compatible() {
        for import in ["packhouse:format/blobs@0.1.0", "packhouse:format/types@0.1.7"] {
            assert_eq!(objection(import), None, "{import}");
        }
    }

    #[test]
    fn an_incompatible_import_is_reported_with_both_versions() {
        let found = objection("packhouse:format/blobs@0.2.0").unwrap();
        assert_eq!(found, "the component imports packhouse:format/blobs@0.2.0; this host offers 0.1.0");
        assert!(objection("packhouse:format/weather@0.1.0").unwrap().contains("has no such interface"));
        let found = objection("wasi:cli/environment@0.2.6").unwrap();
        assert!(found.starts_with("the component imports wasi:") && found.contains("wasi = true"), "{found}");
        assert!(objection("acme:thing/x@1.0.0").unwrap().contains("offers only the interfaces of"));
    }

    #[test]
    fn a_component_of_another_kind_is_refused() {
        let found = objections([].into_iter(), ["wasi:cli/run@0.2.0"].into_iter(), false);
        assert_eq!(
            found,
            ["the component does not export packhouse:format/format@0.1.0; it exports wasi:cli/run@0.2.0"]
        );
        assert_eq!(objections([].into_iter(), GOOD.into_iter(), false), Vec::<String>::new());
    }
}
