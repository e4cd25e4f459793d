//! Rewrites the items of a component one by one. Items of removed imports are dropped, functions
//! that depend on them become traps, and all other items are renumbered.

use super::borrows::{self, Lent};
use super::numbers::NumberMap;
use super::{is_other, traps};
use anyhow::{Error as AnyhowError, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent, component_utils};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, Component, ComponentAliasSection, ComponentExportSection,
    ComponentImportSection, ComponentSectionId, ComponentTypeSection, ExportKind, InstanceSection, Module,
    ModuleArg, ModuleSection, RawSection,
};
use wasmparser::component_types::{ComponentAnyTypeId, ResourceId};
use wasmparser::types::TypesRef;
use wasmparser::{CanonicalFunction, ComponentAlias, ComponentExternalKind, ExternalKind, Parser, Payload};

/// Export through which the build tool made the interpreter read the sources. It must not be called
/// again, so it is removed.
const INITIALISER: &str = "init";

/// State of the rewriting of a component.
pub(super) struct ItemWriter<'a> {
    known: TypesRef<'a>,
    traps: Option<&'a Module>,
    trapper: Option<u32>,
    types: NumberMap,
    instances: NumberMap,
    functions: NumberMap,
    modules: NumberMap,
    core_instances: NumberMap,
    core_functions: NumberMap,
    found: FirstPass,
    /// Guard instances of the borrowed resources that were written so far.
    guards: BTreeMap<ResourceId, u32>,
    /// Number of component, instance and module types around the current item.
    depth: u32,
    /// True if the current item refers to a removed one.
    touches_gone: bool,
}

/// Results of a first pass that the second pass needs.
#[derive(Default)]
pub(super) struct FirstPass {
    /// Core functions that become traps.
    pub(super) trapping: BTreeSet<u32>,
    /// Resources that exported functions borrow.
    pub(super) lent: BTreeSet<ResourceId>,
}

impl<'a> ItemWriter<'a> {
    /// Starts a pass over a component with these types. Without the module of traps this is the
    /// first pass: its output is not valid, and [`found`](Self::found) returns its results.
    pub(super) fn new(known: TypesRef<'a>, found: FirstPass, traps: Option<&'a Module>) -> Self {
        Self {
            known,
            traps,
            trapper: None,
            types: NumberMap::default(),
            instances: NumberMap::default(),
            functions: NumberMap::default(),
            modules: NumberMap::default(),
            core_instances: NumberMap::default(),
            core_functions: NumberMap::default(),
            found,
            guards: BTreeMap::new(),
            depth: 0,
            touches_gone: false,
        }
    }

    pub(super) fn found(self) -> FirstPass {
        self.found
    }

    /// The new number of an item of the component itself. Items of inner types keep their numbers.
    fn renumbered(&mut self, outwards: u32, old: u32, of: fn(&Self) -> &NumberMap) -> u32 {
        if outwards != self.depth {
            return old;
        }
        let new = of(self).of(old);
        self.touches_gone |= new.is_none();
        new.unwrap_or_default()
    }

    fn add(&mut self, kind: ComponentExternalKind, stays: bool) {
        match kind {
            ComponentExternalKind::Type => self.types.add(stays),
            ComponentExternalKind::Instance => self.instances.add(stays),
            ComponentExternalKind::Func => self.functions.add(stays),
            ComponentExternalKind::Module
            | ComponentExternalKind::Component
            | ComponentExternalKind::Value => {}
        }
    }

    /// Reports whether anything since the last call refers to a removed item.
    fn is_gone(&mut self) -> bool {
        std::mem::take(&mut self.touches_gone)
    }

    /// Adds a new module and its instance, which imports these core functions by their new numbers.
    /// Returns the number of the instance.
    fn insert(&mut self, out: &mut Component, module: &Module, imports: &[(&str, u32)]) -> u32 {
        out.section(&ModuleSection(module));
        let number = self.modules.insert();
        let mut instances = InstanceSection::new();
        let handed = self.core_instances.insert();
        instances.export_items(imports.iter().map(|(name, function)| (*name, ExportKind::Func, *function)));
        instances.instantiate(number, [("", ModuleArg::Instance(handed))]);
        out.section(&instances);
        self.core_instances.insert()
    }

    /// The number of the instance with all traps. The first call creates the instance.
    fn trapper(&mut self, out: &mut Component) -> u32 {
        if let Some(instance) = self.trapper {
            return instance;
        }
        if let Some(traps) = self.traps {
            out.section(&ModuleSection(traps));
        }
        let mut instances = InstanceSection::new();
        instances.instantiate(self.modules.insert(), std::iter::empty::<(&str, ModuleArg)>());
        out.section(&instances);
        *self.trapper.insert(self.core_instances.insert())
    }

    /// Adds an alias for a function that an instance exports. The alias gets the next number of
    /// core functions.
    fn alias(out: &mut Component, instance: u32, name: &str) {
        let mut aliases = ComponentAliasSection::new();
        aliases.alias(Alias::CoreInstanceExport { instance, kind: ExportKind::Func, name });
        out.section(&aliases);
    }

    fn canonical(
        &mut self,
        out: &mut Component,
        function: CanonicalFunction,
    ) -> Result<(), Error<AnyhowError>> {
        let mut section = CanonicalFunctionSection::new();
        self.parse_component_canonical(&mut section, function.clone())?;
        let gone = self.is_gone();
        match function {
            CanonicalFunction::Lift { .. } if gone => Err(Error::UserError(anyhow!(
                "an export depends on an import that is not part of the contract"
            ))),
            CanonicalFunction::Lift { core_func_index, type_index, options } => {
                let lent = borrows::lent(self.known, type_index).map_err(Error::UserError)?;
                match lent {
                    None => drop(out.section(&section)),
                    Some(lent) => self.lift(out, core_func_index, type_index, &options, lent)?,
                }
                self.functions.add(true);
                Ok(())
            }
            CanonicalFunction::ResourceDrop { resource } if !gone => {
                out.section(&section);
                match self.known.component_any_type_at(resource) {
                    ComponentAnyTypeId::Resource(id) if self.found.lent.contains(&id.resource()) => {
                        let real = self.core_functions.insert();
                        let guard = self.insert(out, &borrows::guard(), &[("drop", real)]);
                        self.guards.insert(id.resource(), guard);
                        Self::alias(out, guard, "drop");
                    }
                    _ => {}
                }
                self.core_functions.add(true);
                Ok(())
            }
            _ if gone => {
                let old = self.core_functions.old();
                self.found.trapping.insert(old);
                let trapper = self.trapper(out);
                Self::alias(out, trapper, &traps::name(old));
                self.core_functions.add(true);
                Ok(())
            }
            _ => {
                out.section(&section);
                self.core_functions.add(true);
                Ok(())
            }
        }
    }

    /// Lifts the wrapper of a function that borrows a handle, instead of the function itself.
    fn lift(
        &mut self,
        out: &mut Component,
        core_function: u32,
        ty: u32,
        options: &[wasmparser::CanonicalOption],
        lent: Lent,
    ) -> Result<(), Error<AnyhowError>> {
        self.found.lent.insert(lent.resource);
        // The first pass has no guards yet.
        let Some(guard) = self.guards.get(&lent.resource).copied() else { return Ok(()) };
        let (params, results) = traps::signature(self.known, core_function).map_err(Error::UserError)?;
        let mut around = Vec::new();
        for name in ["begin", "end"] {
            Self::alias(out, guard, name);
            around.push((name, self.core_functions.insert()));
        }
        around.push(("call", self.function_index(core_function)?));
        let wrapper = self.insert(out, &borrows::wrapper(&params, &results, lent.parameter), &around);
        Self::alias(out, wrapper, "call");
        let call = self.core_functions.insert();
        let options =
            options.iter().map(|option| self.canonical_option(*option)).collect::<Result<Vec<_>, _>>()?;
        let mut section = CanonicalFunctionSection::new();
        section.lift(call, self.component_type_index(ty), options);
        out.section(&section);
        Ok(())
    }
}

impl Reencode for ItemWriter<'_> {
    type Error = AnyhowError;

    fn function_index(&mut self, index: u32) -> Result<u32, Error<AnyhowError>> {
        Ok(self.renumbered(0, index, |items| &items.core_functions))
    }
}

impl ReencodeComponent for ItemWriter<'_> {
    fn component_type_index(&mut self, index: u32) -> u32 {
        self.renumbered(0, index, |items| &items.types)
    }

    fn component_instance_index(&mut self, index: u32) -> u32 {
        self.renumbered(0, index, |items| &items.instances)
    }

    fn component_func_index(&mut self, index: u32) -> u32 {
        self.renumbered(0, index, |items| &items.functions)
    }

    fn outer_component_type_index(&mut self, count: u32, index: u32) -> u32 {
        self.renumbered(count, index, |items| &items.types)
    }

    fn module_index(&mut self, index: u32) -> u32 {
        self.renumbered(0, index, |items| &items.modules)
    }

    fn instance_index(&mut self, index: u32) -> u32 {
        self.renumbered(0, index, |items| &items.core_instances)
    }

    fn push_depth(&mut self) {
        self.depth += 1;
    }

    fn pop_depth(&mut self) {
        self.depth -= 1;
    }

    fn parse_component_payload(
        &mut self,
        component: &mut Component,
        payload: Payload<'_>,
        whole: &[u8],
    ) -> Result<(), Error<AnyhowError>> {
        match payload {
            // Custom sections are dropped: the names in them refer to old numbers.
            Payload::CustomSection(_) => Ok(()),
            Payload::ComponentCanonicalSection(section) => {
                section.into_iter().try_for_each(|function| self.canonical(component, function?))
            }
            payload => component_utils::parse_component_payload(self, component, payload, whole),
        }
    }

    fn parse_component_submodule(
        &mut self,
        component: &mut Component,
        _parser: Parser,
        module: &[u8],
    ) -> Result<(), Error<AnyhowError>> {
        self.modules.add(true);
        component.section(&RawSection { id: ComponentSectionId::CoreModule as u8, data: &bare(module)? });
        Ok(())
    }

    /// Copies an inner component unchanged. Inner components are shims for exports and refer to
    /// nothing outside.
    fn parse_component_subcomponent(
        &mut self,
        component: &mut Component,
        _parser: Parser,
        subcomponent: &[u8],
        _whole: &[u8],
    ) -> Result<(), Error<AnyhowError>> {
        component.section(&RawSection { id: ComponentSectionId::Component as u8, data: subcomponent });
        Ok(())
    }

    fn parse_component_type_section(
        &mut self,
        types: &mut ComponentTypeSection,
        section: wasmparser::ComponentTypeSectionReader<'_>,
    ) -> Result<(), Error<AnyhowError>> {
        for ty in section {
            let ty = ty?;
            self.parse_component_type(ComponentTypeSection::new().ty(), ty.clone())?;
            let gone = self.is_gone();
            if !gone {
                self.parse_component_type(types.ty(), ty)?;
            }
            self.types.add(!gone);
        }
        Ok(())
    }

    fn parse_component_import_section(
        &mut self,
        imports: &mut ComponentImportSection,
        section: wasmparser::ComponentImportSectionReader<'_>,
    ) -> Result<(), Error<AnyhowError>> {
        for import in section {
            let import = import?;
            let stays = !is_other(import.name.name);
            if stays {
                imports.import(import.name, self.component_type_ref(import.ty)?);
            }
            self.add(import.ty.kind(), stays);
        }
        Ok(())
    }

    fn parse_component_alias_section(
        &mut self,
        aliases: &mut ComponentAliasSection,
        section: wasmparser::ComponentAliasSectionReader<'_>,
    ) -> Result<(), Error<AnyhowError>> {
        for alias in section {
            let alias = alias?;
            let written = self.component_alias(alias.clone())?;
            let stays = !self.is_gone();
            if stays {
                aliases.alias(written);
            }
            match alias {
                ComponentAlias::InstanceExport { kind, .. } => self.add(kind, stays),
                ComponentAlias::CoreInstanceExport { kind: ExternalKind::Func, .. } => {
                    self.core_functions.add(true);
                }
                ComponentAlias::CoreInstanceExport { .. } => {}
                ComponentAlias::Outer { .. } => {
                    return Err(Error::UserError(anyhow!("the component refers to an outer component")));
                }
            }
        }
        Ok(())
    }

    fn parse_component_instance_section(
        &mut self,
        instances: &mut wasm_encoder::ComponentInstanceSection,
        section: wasmparser::ComponentInstanceSectionReader<'_>,
    ) -> Result<(), Error<AnyhowError>> {
        for instance in section {
            self.parse_component_instance(instances, instance?)?;
            self.instances.add(true);
        }
        Ok(())
    }

    fn parse_instance_section(
        &mut self,
        instances: &mut InstanceSection,
        section: wasmparser::InstanceSectionReader<'_>,
    ) -> Result<(), Error<AnyhowError>> {
        for instance in section {
            self.parse_instance(instances, instance?)?;
            self.core_instances.add(true);
        }
        Ok(())
    }

    fn parse_component_export_section(
        &mut self,
        exports: &mut ComponentExportSection,
        section: wasmparser::ComponentExportSectionReader<'_>,
    ) -> Result<(), Error<AnyhowError>> {
        for export in section {
            let export = export?;
            let (kind, stays) = (export.kind, export.name.name != INITIALISER);
            if stays {
                self.parse_component_export(exports, export)?;
            }
            self.add(kind, stays);
        }
        Ok(())
    }
}

/// Removes the custom sections from a core module.
fn bare(module: &[u8]) -> Result<Vec<u8>, Error<AnyhowError>> {
    let mut stripped = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        if let Some((id, range)) = payload.as_section()
            && !matches!(payload, Payload::CustomSection(_))
        {
            stripped.section(&RawSection { id, data: module.get(range).unwrap_or_default() });
        }
    }
    Ok(stripped.finish())
}
