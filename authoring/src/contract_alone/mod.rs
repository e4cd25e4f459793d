//! Makes of what componentize-qjs made a component that imports the contract alone: what it imported besides traps.
//!
//! componentize-qjs answers a component around two others: the interpreter, whose memory is as it was once the sources had been read, and
//! what stands for the import by which they were read. A call from one component to another needs an engine that lets a module have several
//! memories, each instance would take a second memory's place, and WASI would still be imported. So the interpreter's component is taken
//! out, and in it each function of such an import becomes one that traps: the interpreter calls none of them once it is initialised,
//! unless sources ask it for the time, for chance or for a console.

mod borrows;
mod items;
mod numbers;
mod traps;

use anyhow::{Context as _, Result, anyhow};
use items::{Found, Items};
use wasm_encoder::Component;
use wasm_encoder::reencode::ReencodeComponent as _;
use wasmparser::{Parser, Payload, Validator};

/// By which the sources were read.
const LOADER: &str = "local:init/module-loader";
/// The package of what else must not be imported.
const WASI: &str = "wasi:";

/// Whether an import is none of the contract's.
fn is_other(import: &str) -> bool {
    import == LOADER || import.starts_with(WASI)
}

/// The same component with nothing imported but the contract; none where another tool made it.
///
/// # Errors
/// A component that is built in another way than componentize-qjs does it.
pub(crate) fn reduce(composed: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(interpreter) = interpreter(composed)? else { return Ok(None) };
    let known = Validator::new().validate_all(interpreter)?;
    let mut first = Items::new(known.as_ref(), Found::default(), None);
    written(&mut first, interpreter)?;
    let found = first.found();
    let traps = traps::module(known.as_ref(), &found.trapping)?;
    let reduced = written(&mut Items::new(known.as_ref(), found, Some(&traps)), interpreter)?;
    Validator::new().validate_all(&reduced).context("without WASI it is no component any more")?;
    Ok(Some(reduced))
}

fn written(items: &mut Items<'_>, interpreter: &[u8]) -> Result<Vec<u8>> {
    let mut component = Component::new();
    let done = items.parse_component(&mut component, Parser::new(0), interpreter);
    done.map_err(|error| anyhow!("failed to take WASI out of the component: {error:?}"))?;
    Ok(component.finish())
}

/// The component right within that imports what the sources were read by.
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

    /// As componentize-qjs composes it: an interpreter, and what stands for the import by which it read the sources.
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
    fn what_is_left_imports_the_contract_alone() {
        let reduced = reduce(&wat::parse_str(COMPOSED).unwrap()).unwrap().unwrap();
        assert_eq!(names(&reduced), (vec!["test:contract/things@0.1.0".to_owned()], vec!["use".to_owned()]));
        // One for the function that traps, the guard of what is lent, and the wrapper around what it is lent to.
        let modules = Parser::new(0).parse_all(&reduced);
        let modules = modules.filter(|payload| matches!(payload, Ok(Payload::ModuleSection { .. })));
        assert_eq!(modules.count(), 4);
    }

    #[test]
    fn what_another_tool_made_stays_as_it_is() {
        let other = r#"(component (import "wasi:cli/exit@0.2.0" (instance (export "exit" (func)))))"#;
        assert!(reduce(&wat::parse_str(other).unwrap()).unwrap().is_none());
        assert!(reduce(b"nonsense").is_err());
    }
}
