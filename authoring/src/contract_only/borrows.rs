//! Drops borrowed handles in time. An exported function must drop its borrowed handles before it
//! returns. The interpreter drops them only after the host has read the result, which is too late:
//! the host then ends the call with an error. A wrapper around the exported function therefore
//! drops the handle before it returns. A guard around the resource's `drop` ignores the
//! interpreter's own later drop of the same handle.

use anyhow::{Result, anyhow, bail};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, GlobalType, ImportSection, Module, TypeSection, ValType,
};
use wasmparser::PrimitiveValType;
use wasmparser::component_types::{ComponentAnyTypeId, ComponentDefinedType, ComponentValType, ResourceId};
use wasmparser::types::TypesRef;

/// The borrowed handle that a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lent {
    pub(super) resource: ResourceId,
    /// Index of the handle among the core function's parameters.
    pub(super) parameter: u32,
}

/// The borrowed handle that functions of this type take, if any.
pub(super) fn lent(known: TypesRef<'_>, function_type: u32) -> Result<Option<Lent>> {
    let ComponentAnyTypeId::Func(id) = known.component_any_type_at(function_type) else {
        bail!("the type of a function is not a function type");
    };
    let function = known.get(id).ok_or_else(|| anyhow!("a function has no type"))?;
    let mut found = None;
    let mut parameter = Some(0);
    for (_, ty) in &function.params {
        if let Some(resource) = borrowed(known, ty) {
            match (found, parameter) {
                (None, Some(parameter)) => found = Some(Lent { resource, parameter }),
                _ => bail!(
                    "a function takes more than one borrowed handle, or one after a parameter of a compound type"
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

/// Number of core parameters of a value that precedes the borrowed handle. `None` for compound
/// types.
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

/// The guard module of a resource. Its `drop` replaces the real `drop`, which it imports. `begin`
/// and `end` enclose a call that borrows a handle.
///
/// During the call, the module remembers the borrowed handle, and `end` drops it. Afterwards the
/// module remembers the handle as dropped, so that the next `drop` of this handle does nothing. A
/// handle is never 0.
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

/// The wrapper module of an exported function: its export `call` calls `begin`, the function and
/// `end`.
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
