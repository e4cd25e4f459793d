//! Rewrites a component from componentize-qjs so that it imports only the contract. The functions
//! that need other imports become traps.
//!
//! componentize-qjs returns a component that contains two others. One is the interpreter, with its
//! memory as it was after reading the sources. The other replaces the import through which the
//! interpreter read the sources. To run both, an engine would need support for several memories per
//! module, a second memory for each instance, and WASI. Therefore only the interpreter's component
//! is used. The initialised interpreter calls none of the trapping functions, unless the sources
//! use the time, random numbers or a console.

mod borrows;
mod items;
mod numbers;
mod traps;

use anyhow::{Context as _, Result, anyhow};
use items::{FirstPass, ItemWriter};
use wasm_encoder::Component;
use wasm_encoder::reencode::ReencodeComponent as _;
use wasmparser::{Parser, Payload, Validator};

/// Import through which the interpreter read the sources.
const LOADER: &str = "local:init/module-loader";
/// Prefix of the other imports to remove.
const WASI: &str = "wasi:";

/// Reports whether an import is not part of the contract.
fn is_other(import: &str) -> bool {
    import == LOADER || import.starts_with(WASI)
}

/// Removes all imports but the contract. `None` if another tool built the component.
///
/// # Errors
/// Fails if the component does not have the structure that componentize-qjs produces.
pub(crate) fn reduce(composed: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(interpreter) = interpreter(composed)? else { return Ok(None) };
    let known = Validator::new().validate_all(interpreter)?;
    let mut first = ItemWriter::new(known.as_ref(), FirstPass::default(), None);
    written(&mut first, interpreter)?;
    let found = first.found();
    let traps = traps::module(known.as_ref(), &found.trapping)?;
    let reduced = written(&mut ItemWriter::new(known.as_ref(), found, Some(&traps)), interpreter)?;
    Validator::new().validate_all(&reduced).context("without its WASI imports the component is not valid")?;
    Ok(Some(reduced))
}

fn written(items: &mut ItemWriter<'_>, interpreter: &[u8]) -> Result<Vec<u8>> {
    let mut component = Component::new();
    let done = items.parse_component(&mut component, Parser::new(0), interpreter);
    done.map_err(|error| anyhow!("failed to remove the WASI imports from the component: {error:?}"))?;
    Ok(component.finish())
}

/// The inner component that imports the loader: the interpreter.
fn interpreter(composed: &[u8]) -> Result<Option<&[u8]>> {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(composed) {
        match payload? {
            Payload::ComponentSection { unchecked_range, .. } => {
                let within = composed.get(unchecked_range).unwrap_or_default();
                if depth == 0 && has_loader(within)? {
                    return Ok(Some(within));
                }
                depth += 1;
            }
            Payload::ModuleSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(None)
}

fn has_loader(component: &[u8]) -> Result<bool> {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ComponentSection { .. } | Payload::ModuleSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    if import?.name.name == LOADER {
                        return Ok(true);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component as componentize-qjs composes it, with an interpreter inside.
    const COMPOSED: &str = r#"(component
        (import "test:contract/things@0.1.0" (instance $things (export "thing" (type (sub resource)))))
        (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
        (component $interpreter
            (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
            (alias export $errors "error" (type $error))
            (import "wasi:io/streams@0.2.0" (instance $streams
                (alias outer 1 $error (type $error))
                (export "last" (func (result (own $error))))))
            (import "local:init/module-loader" (instance $loader (export "load" (func (param "path" u32) (result u32)))))
            (import "test:contract/things@0.1.0" (instance $things (export "thing" (type (sub resource)))))
            (alias export $things "thing" (type $thing))
            (core func $load (canon lower (func $loader "load")))
            (core func $last (canon lower (func $streams "last")))
            (core func $drop-error (canon resource.drop $error))
            (core func $drop-thing (canon resource.drop $thing))
            (core module $engine
                (import "host" "load" (func (param i32) (result i32)))
                (import "host" "last" (func (result i32)))
                (import "host" "drop-error" (func (param i32)))
                (import "host" "drop-thing" (func $drop (param i32)))
                (func (export "use") (param i32 i32) (result i32) (call $drop (local.get 1)) (i32.const 7))
                (func (export "init") (result i32) (i32.const 0)))
            (core instance $engine (instantiate $engine (with "host" (instance
                (export "load" (func $load)) (export "last" (func $last))
                (export "drop-error" (func $drop-error)) (export "drop-thing" (func $drop-thing))))))
            (func $use (param "kind" u32) (param "thing" (borrow $thing)) (result u32)
                (canon lift (core func $engine "use")))
            (func $init (result u32) (canon lift (core func $engine "init")))
            (export "use" (func $use))
            (export "init" (func $init)))
    )"#;

    fn names(component: &[u8]) -> (Vec<String>, Vec<String>) {
        let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0);
        for payload in Parser::new(0).parse_all(component) {
            match payload.unwrap() {
                Payload::ComponentSection { .. } | Payload::ModuleSection { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(section) if depth == 0 => {
                    imports.extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    exports.extend(section.into_iter().map(|export| export.unwrap().name.name.to_owned()));
                }
                _ => {}
            }
        }
        (imports, exports)
    }

    #[test]
    fn the_reduced_component_imports_only_the_contract() {
        let reduced = reduce(&wat::parse_str(COMPOSED).unwrap()).unwrap().unwrap();
        assert_eq!(names(&reduced), (vec!["test:contract/things@0.1.0".to_owned()], vec!["use".to_owned()]));
        // The modules are the engine, the traps, the guard of the borrowed resource, and the
        // wrapper of the function.
        let modules = Parser::new(0).parse_all(&reduced);
        let modules = modules.filter(|payload| matches!(payload, Ok(Payload::ModuleSection { .. })));
        assert_eq!(modules.count(), 4);
    }

    #[test]
    fn components_of_other_tools_are_not_changed() {
        let other = r#"(component (import "wasi:cli/exit@0.2.0" (instance (export "exit" (func)))))"#;
        assert!(reduce(&wat::parse_str(other).unwrap()).unwrap().is_none());
        assert!(reduce(b"nonsense").is_err());
    }
}
