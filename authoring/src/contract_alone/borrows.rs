//! What exported functions are lent must be given back before they return. The interpreter does that when it is told that its answer was read,
//! which is too late for the host. So the function by which it gives back is taken from it: it counts for what was lent only once, and a
//! wrapper around the exported function calls it in time.

use anyhow::{Result, anyhow, bail};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, GlobalType, ImportSection, Module, TypeSection, ValType,
};
use wasmparser::PrimitiveValType;
use wasmparser::component_types::{ComponentAnyTypeId, ComponentDefinedType, ComponentValType, ResourceId};
use wasmparser::types::TypesRef;

/// What a function is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lent {
    pub(super) resource: ResourceId,
    /// Which of the core function's parameters it is.
    pub(super) parameter: u32,
}

/// What the functions of this type are lent; none where it is nothing.
pub(super) fn lent(known: TypesRef<'_>, function_type: u32) -> Result<Option<Lent>> {
    let ComponentAnyTypeId::Func(id) = known.component_any_type_at(function_type) else {
        bail!("a function's type is none");
    };
    let function = known.get(id).ok_or_else(|| anyhow!("a function has no type"))?;
    let mut found = None;
    let mut parameter = Some(0);
    for (_, ty) in &function.params {
        if let Some(resource) = borrowed(known, ty) {
            match (found, parameter) {
                (None, Some(parameter)) => found = Some(Lent { resource, parameter }),
                _ => bail!(
                    "a function that is lent more than one thing, or something behind a value of several parts"
                ),
            }
        }
        parameter = parameter.and_then(|at| Some(at + width(known, ty)?));
    }
    Ok(found)
}

fn borrowed(known: TypesRef<'_>, ty: &ComponentValType) -> Option<ResourceId> {
    let ComponentValType::Type(id) = ty else { return None };
    match known.get(*id)? {
        ComponentDefinedType::Borrow(resource) => Some(resource.resource()),
        _ => None,
    }
}

/// How many parameters of a core function a value is, of those that stand before what is lent.
fn width(known: TypesRef<'_>, ty: &ComponentValType) -> Option<u32> {
    match ty {
        ComponentValType::Primitive(PrimitiveValType::String) => Some(2),
        ComponentValType::Primitive(_) => Some(1),
        ComponentValType::Type(id) => match known.get(*id)? {
            ComponentDefinedType::List { .. } => Some(2),
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => Some(1),
            _ => None,
        },
    }
}

/// The module of a resource: `drop` takes the place of the one that it imports, `begin` and `end` stand around a call that is lent one.
///
/// It remembers what is lent as long as the call lasts, and afterwards what is to be given back a second time, which then is nothing.
/// A handle is never 0.
pub(super) fn guard() -> Module {
    const REAL: u32 = 0;
    const LENT: u32 = 0;
    const RETURNED: u32 = 1;
    let (mut types, mut imports, mut functions) =
        (TypeSection::new(), ImportSection::new(), FunctionSection::new());
    types.ty().function([ValType::I32], []);
    types.ty().function([], []);
    imports.import("", "drop", EntityType::Function(0));
    let mut globals = GlobalSection::new();
    for _ in [LENT, RETURNED] {
        let ty = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(ty, &ConstExpr::i32_const(0));
    }
    let mut exports = ExportSection::new();
    let mut code = CodeSection::new();
    for (at, (name, ty)) in (1..).zip([("drop", 0), ("begin", 0), ("end", 1)]) {
        functions.function(ty);
        exports.export(name, ExportKind::Func, at);
    }
    let mut drop = Function::new([]);
    drop.instructions()
        .local_get(0)
        .global_get(RETURNED)
        .i32_eq()
        .if_(BlockType::Empty)
        .i32_const(0)
        .global_set(RETURNED)
        .return_()
        .end()
        .local_get(0)
        .global_get(LENT)
        .i32_eq()
        .if_(BlockType::Empty)
        .i32_const(0)
        .global_set(LENT)
        .end()
        .local_get(0)
        .call(REAL)
        .end();
    let mut begin = Function::new([]);
    begin.instructions().i32_const(0).global_set(RETURNED).local_get(0).global_set(LENT).end();
    let mut end = Function::new([]);
    end.instructions()
        .global_get(LENT)
        .if_(BlockType::Empty)
        .global_get(LENT)
        .call(REAL)
        .global_get(LENT)
        .global_set(RETURNED)
        .i32_const(0)
        .global_set(LENT)
        .end()
        .end();
    code.function(&drop).function(&begin).function(&end);
    let mut module = Module::new();
    module
        .section(&types)
        .section(&imports)
        .section(&functions)
        .section(&globals)
        .section(&exports)
        .section(&code);
    module
}

/// The module of an exported function: `call` is it with what stands around it.
pub(super) fn wrapper(params: &[ValType], results: &[ValType], lent: u32) -> Module {
    let (mut types, mut imports, mut functions) =
        (TypeSection::new(), ImportSection::new(), FunctionSection::new());
    types.ty().function(params.iter().copied(), results.iter().copied());
    types.ty().function([ValType::I32], []);
    types.ty().function([], []);
    for (name, ty) in [("call", 0), ("begin", 1), ("end", 2)] {
        imports.import("", name, EntityType::Function(ty));
    }
    functions.function(0);
    let (mut exports, mut code, mut body) = (ExportSection::new(), CodeSection::new(), Function::new([]));
    exports.export("call", ExportKind::Func, 3);
    body.instructions().local_get(lent).call(1);
    for (at, _) in (0..).zip(params) {
        body.instructions().local_get(at);
    }
    body.instructions().call(0).call(2).end();
    code.function(&body);
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
    module
}
