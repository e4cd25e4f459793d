//! The component's items, one after the other: those of imports that go are left out, those that are made of them trap, and all others are
//! written with the numbers that they then have.

use super::borrows::{self, Lent};
use super::numbers::Numbers;
use super::{is_other, traps};
use anyhow::{Error as Fault, anyhow};
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

/// By which the sources were read: nobody is to call it again.
const INITIALISER: &str = "init";

/// Where the writing of a component stands.
pub(super) struct Items<'a> {
    known: TypesRef<'a>,
    traps: Option<&'a Module>,
    trapper: Option<u32>,
    types: Numbers,
    instances: Numbers,
    functions: Numbers,
    modules: Numbers,
    core_instances: Numbers,
    core_functions: Numbers,
    found: Found,
    /// Which instance guards a resource that is lent, once it is there.
    guards: BTreeMap<ResourceId, u32>,
    /// How many types of components, instances or modules the current item is within.
    depth: u32,
    /// Whether the current item is made of one that is gone.
    touches_gone: bool,
}

/// What a first writing finds out for the second.
#[derive(Default)]
pub(super) struct Found {
    /// Core functions that are to trap.
    pub(super) trapping: BTreeSet<u32>,
    /// Resources that exported functions are lent.
    pub(super) lent: BTreeSet<ResourceId>,
}

impl<'a> Items<'a> {
    /// Nothing written yet, of a component whose types are known. Without the module of traps what is written is none, and
    /// [`found`](Self::found) says what the second writing needs.
    pub(super) fn new(known: TypesRef<'a>, found: Found, traps: Option<&'a Module>) -> Self {
        Self {
            known,
            traps,
            trapper: None,
            types: Numbers::default(),
            instances: Numbers::default(),
            functions: Numbers::default(),
            modules: Numbers::default(),
            core_instances: Numbers::default(),
            core_functions: Numbers::default(),
            found,
            guards: BTreeMap::new(),
            depth: 0,
            touches_gone: false,
        }
    }

    pub(super) fn found(self) -> Found {
        self.found
    }

    /// The new number, where the item is of the component itself and not of a type within.
    fn renumbered(&mut self, outwards: u32, old: u32, of: fn(&Self) -> &Numbers) -> u32 {
        if outwards != self.depth {
            return old;
        }
        let new = of(self).of(old);
        self.touches_gone |= new.is_none();
        new.unwrap_or_default()
    }

    fn add(&mut self, kind: ComponentExternalKind, kept: bool) {
        match kind {
            ComponentExternalKind::Type => self.types.add(kept),
            ComponentExternalKind::Instance => self.instances.add(kept),
            ComponentExternalKind::Func => self.functions.add(kept),
            ComponentExternalKind::Module
            | ComponentExternalKind::Component
            | ComponentExternalKind::Value => {}
        }
    }

    /// Whether what was written since the last question is made of something that is gone.
    fn is_gone(&mut self) -> bool {
        std::mem::take(&mut self.touches_gone)
    }

    /// Adds a module that was not there, and its instance over these core functions, by their new numbers: the instance's number.
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

    /// The number of the instance of all traps, which is made when the first is wanted.
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

    /// Makes a core function of what such an instance exports. Its number is the next.
    fn alias(out: &mut Component, instance: u32, name: &str) {
        let mut aliases = ComponentAliasSection::new();
        aliases.alias(Alias::CoreInstanceExport { instance, kind: ExportKind::Func, name });
        out.section(&aliases);
    }

    fn canonical(&mut self, out: &mut Component, function: CanonicalFunction) -> Result<(), Error<Fault>> {
        let mut section = CanonicalFunctionSection::new();
        self.parse_component_canonical(&mut section, function.clone())?;
        let gone = self.is_gone();
        match function {
            CanonicalFunction::Lift { .. } if gone => {
                Err(Error::UserError(anyhow!("an export is made of what is imported besides the contract")))
            }
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

    /// Exports a function that is lent something, within its wrapper.
    fn lift(
        &mut self,
        out: &mut Component,
        core_function: u32,
        ty: u32,
        options: &[wasmparser::CanonicalOption],
        lent: Lent,
    ) -> Result<(), Error<Fault>> {
        self.found.lent.insert(lent.resource);
        // In the first writing there are no guards yet.
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

impl Reencode for Items<'_> {
    type Error = Fault;

    fn function_index(&mut self, index: u32) -> Result<u32, Error<Fault>> {
        Ok(self.renumbered(0, index, |items| &items.core_functions))
    }
}

impl ReencodeComponent for Items<'_> {
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
    ) -> Result<(), Error<Fault>> {
        match payload {
            // Names go by numbers that change.
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
    ) -> Result<(), Error<Fault>> {
        self.modules.add(true);
        component.section(&RawSection { id: ComponentSectionId::CoreModule as u8, data: &bare(module)? });
        Ok(())
    }

    /// Components within are shims of exports: they refer to nothing around them.
    fn parse_component_subcomponent(
        &mut self,
        component: &mut Component,
        _parser: Parser,
        subcomponent: &[u8],
        _whole: &[u8],
    ) -> Result<(), Error<Fault>> {
        component.section(&RawSection { id: ComponentSectionId::Component as u8, data: subcomponent });
        Ok(())
    }

    fn parse_component_type_section(
        &mut self,
        types: &mut ComponentTypeSection,
        section: wasmparser::ComponentTypeSectionReader<'_>,
    ) -> Result<(), Error<Fault>> {
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
    ) -> Result<(), Error<Fault>> {
        for import in section {
            let import = import?;
            let kept = !is_other(import.name.name);
            if kept {
                imports.import(import.name, self.component_type_ref(import.ty)?);
            }
            self.add(import.ty.kind(), kept);
        }
        Ok(())
    }

    fn parse_component_alias_section(
        &mut self,
        aliases: &mut ComponentAliasSection,
        section: wasmparser::ComponentAliasSectionReader<'_>,
    ) -> Result<(), Error<Fault>> {
        for alias in section {
            let alias = alias?;
            let written = self.component_alias(alias.clone())?;
            let kept = !self.is_gone();
            if kept {
                aliases.alias(written);
            }
            match alias {
                ComponentAlias::InstanceExport { kind, .. } => self.add(kind, kept),
                ComponentAlias::CoreInstanceExport { kind: ExternalKind::Func, .. } => {
                    self.core_functions.add(true);
                }
                ComponentAlias::CoreInstanceExport { .. } => {}
                ComponentAlias::Outer { .. } => {
                    return Err(Error::UserError(anyhow!("it is made for a component around it")));
                }
            }
        }
        Ok(())
    }

    fn parse_component_instance_section(
        &mut self,
        instances: &mut wasm_encoder::ComponentInstanceSection,
        section: wasmparser::ComponentInstanceSectionReader<'_>,
    ) -> Result<(), Error<Fault>> {
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
    ) -> Result<(), Error<Fault>> {
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
    ) -> Result<(), Error<Fault>> {
        for export in section {
            let export = export?;
            let (kind, kept) = (export.kind, export.name.name != INITIALISER);
            if kept {
                self.parse_component_export(exports, export)?;
            }
            self.add(kind, kept);
        }
        Ok(())
    }
}

/// A core module without what only says how it was made.
fn bare(module: &[u8]) -> Result<Vec<u8>, Error<Fault>> {
    let mut kept = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        if let Some((id, range)) = payload.as_section()
            && !matches!(payload, Payload::CustomSection(_))
        {
            kept.section(&RawSection { id, data: module.get(range).unwrap_or_default() });
        }
    }
    Ok(kept.finish())
}
