//! Builds a module of core functions that trap. Each trap has the type of the function that it
//! replaces.

use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use wasm_encoder::reencode::{Reencode as _, RoundtripReencoder};
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, Module, TypeSection, ValType,
};
use wasmparser::types::TypesRef;

/// Export name of the trap that replaces this core function of the component.
pub(super) fn name(core_function: u32) -> String {
    format!("t{core_function}")
}

/// The module with a trap for each of these core functions of the component.
pub(super) fn module(known: TypesRef<'_>, core_functions: &BTreeSet<u32>) -> Result<Module> {
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
    for (at, index) in (0..).zip(core_functions) {
        let (params, results) = signature(known, *index)?;
        types.ty().function(params, results);
        functions.function(at);
        exports.export(&name(*index), ExportKind::Func, at);
        let mut body = Function::new([]);
        body.instructions().unreachable().end();
        code.function(&body);
    }
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&exports).section(&code);
    Ok(module)
}

/// Parameters and results of this core function of the component.
pub(super) fn signature(known: TypesRef<'_>, core_function: u32) -> Result<(Vec<ValType>, Vec<ValType>)> {
    let ty = known.get(known.core_function_at(core_function));
    let ty = ty.ok_or_else(|| anyhow!("core function {core_function} has no type"))?.unwrap_func();
    Ok((encoded(ty.params())?, encoded(ty.results())?))
}

fn encoded(values: &[wasmparser::ValType]) -> Result<Vec<ValType>> {
    let values = values.iter().map(|value| RoundtripReencoder.val_type(*value));
    values.collect::<Result<_, _>>().map_err(|error| anyhow!("{error}"))
}
