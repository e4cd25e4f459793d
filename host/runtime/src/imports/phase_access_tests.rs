//! Phase access of every import of the contract: `describe` may call nothing, `route` only its
//! request and intents, later phases everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use wasmtime::component::{Component, InstancePre};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Function, Handle, Resolve, Type, TypeDefKind, TypeId, WorldItem};

use crate::config::Limits;
use crate::engine::{EngineOptions, engine};
use crate::error::CallError;
use crate::instance::{CallName, Runner};
use crate::request::RequestHead;
use crate::state::{HostState, Phase};

struct Import {
    interface: String,
    name: String,
    /// Resources of which the guest must hold a handle to call this import.
    wants: BTreeSet<String>,
    /// Resources of which the call may return handles.
    gives: BTreeSet<String>,
    params: Vec<WasmType>,
    results: Vec<WasmType>,
}

impl Import {
    /// Returns true if a guest may call the import in `route`.
    fn is_pure(&self) -> bool {
        self.interface == "http" && (self.name.contains("]request.") || self.name.contains("]intent"))
    }

    fn full_name(&self) -> String {
        format!("{}.{}", self.interface, self.name)
    }
}

#[tokio::test]
async fn route_reaches_the_request_and_intents_and_describe_nothing() {
    let imports = contract();
    let guest = Guest::calling(&imports);
    let none = BTreeSet::new();
    let request = BTreeSet::from(["request".to_owned()]);
    let mut refused = Vec::new();
    for (phase, function, given) in [(Phase::Describe, "describe", none), (Phase::Route, "route", request)] {
        let pure = |import: &Import| phase == Phase::Route && import.is_pure();
        for (number, import) in callable(&imports, given, pure) {
            let (import, called) = (import.full_name(), guest.call(number, phase).await);
            let error = called.expect_err(&import).to_string();
            let expected = format!("{function} called {import}, which cannot be called from there");
            assert!(
                error.contains(&expected),
                "{import} in {function}: {error:?}; let it call `HostState::reach`"
            );
            let served = guest.call(number, Phase::Serve).await;
            let error = served.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.contains("cannot be called"), "{import}: {error}");
            refused.push(format!("{function} {import}"));
        }
    }
    for import in ["describe http.[constructor]intent", "route host.now", "route blobs.[constructor]writer"] {
        assert!(refused.iter().any(|other| other == import), "{import} was not tried: {refused:?}");
    }
}

#[tokio::test]
async fn an_intent_can_be_made_in_route() {
    let imports = contract();
    let guest = Guest::calling(&imports);
    let intent = imports.iter().position(|import| import.name == "[constructor]intent").unwrap();
    assert!(guest.call(intent, Phase::Route).await.is_ok());
}

/// Returns the imports, with their numbers, that a guest with handles of `given` can call, without
/// the `pure` ones. Handles that a callable import returns count as given too.
fn callable(
    imports: &[Import],
    mut given: BTreeSet<String>,
    pure: impl Fn(&Import) -> bool,
) -> Vec<(usize, &Import)> {
    loop {
        let (allowed, others): (Vec<_>, Vec<_>) = imports
            .iter()
            .enumerate()
            .filter(|(_, import)| import.wants.is_subset(&given))
            .partition(|(_, import)| pure(import));
        let known = given.len();
        // There is no body before `handle`, so these two return nothing.
        let giving = allowed.iter().filter(|(_, import)| !import.name.contains("]request.take-"));
        given.extend(giving.flat_map(|(_, import)| import.gives.clone()));
        if given.len() == known {
            return others;
        }
    }
}

/// A guest that calls any import with only zeros.
struct Guest {
    runner: Runner,
    linked: InstancePre<HostState>,
}

impl Guest {
    fn calling(imports: &[Import]) -> Guest {
        let engine = engine(&EngineOptions { pool: None, memory_bytes: 1 << 20 }).unwrap();
        let component = Component::new(&engine, component(imports)).unwrap();
        let linked = super::linker(&engine, false).unwrap().instantiate_pre(&component).unwrap();
        let limits = Limits::default();
        let slots = Arc::new(tokio::sync::Semaphore::new(limits.concurrency));
        Guest { runner: Runner::new(engine, "reaching".into(), limits, slots), linked }
    }

    async fn call(&self, number: usize, phase: Phase) -> Result<(), CallError> {
        let name = CallName {
            function: "route",
            format: "reaching".into(),
            repository: None,
            repository_id: None,
            head: Arc::new(RequestHead::default()),
        };
        let state = || {
            let (plugin, limits) = (Arc::clone(&self.runner.plugin), Arc::clone(&self.runner.limits));
            HostState::within(phase, plugin, limits, Arc::new(RequestHead::default()))
        };
        let call = self.runner.run(name, state, &self.linked, async |guest, instance| {
            let function = instance.get_typed_func::<(), ()>(&mut *guest, &format!("call{number}"))?;
            function.call_async(guest, ()).await
        });
        call.await
    }
}

/// Every function of every interface of the world `imports`.
fn contract() -> Vec<Import> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit()).unwrap();
    let world = resolve.packages[package].worlds["imports"];
    let mut imports = Vec::new();
    for item in resolve.worlds[world].imports.values() {
        let WorldItem::Interface { id, .. } = item else { panic!("the world imports only interfaces") };
        let interface = &resolve.interfaces[*id];
        let made = |function: &Function| import(&resolve, interface.name.as_deref().unwrap(), function);
        imports.extend(interface.functions.values().map(made));
    }
    assert!(imports.len() > 50, "{} functions", imports.len());
    imports
}

fn wit() -> String {
    format!("{}/../../wit/v0.1", env!("CARGO_MANIFEST_DIR"))
}

fn import(resolve: &Resolve, interface: &str, function: &Function) -> Import {
    let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
    let mut gives = BTreeSet::new();
    if let Some(result) = &function.result {
        mentioned(resolve, result, &mut gives);
    }
    Import {
        interface: interface.to_owned(),
        name: function.name.clone(),
        // A handle within an option or a list can be left out.
        wants: function.params.iter().filter_map(|param| handle(resolve, &param.ty)).collect(),
        gives,
        params: signature.params,
        results: signature.results,
    }
}

/// Returns the resource of a handle type.
fn handle(resolve: &Resolve, of: &Type) -> Option<String> {
    let Type::Id(id) = of else { return None };
    match &resolve.types[*id].kind {
        TypeDefKind::Handle(Handle::Own(resource) | Handle::Borrow(resource)) => {
            Some(name(resolve, *resource))
        }
        _ => None,
    }
}

/// Returns the name of a resource at its declaration.
fn name(resolve: &Resolve, id: TypeId) -> String {
    match &resolve.types[id].kind {
        TypeDefKind::Type(Type::Id(used)) => name(resolve, *used),
        _ => resolve.types[id].name.clone().unwrap(),
    }
}

/// Adds every resource of which a value of this type may hold handles.
fn mentioned(resolve: &Resolve, of: &Type, found: &mut BTreeSet<String>) {
    found.extend(handle(resolve, of));
    let Type::Id(id) = of else { return };
    let parts: Vec<Type> = match &resolve.types[*id].kind {
        TypeDefKind::Record(record) => record.fields.iter().map(|field| field.ty).collect(),
        TypeDefKind::Variant(variant) => variant.cases.iter().filter_map(|case| case.ty).collect(),
        TypeDefKind::Tuple(tuple) => tuple.types.clone(),
        TypeDefKind::Option(part) | TypeDefKind::List(part) | TypeDefKind::Type(part) => vec![*part],
        TypeDefKind::Result(result) => result.ok.into_iter().chain(result.err).collect(),
        TypeDefKind::Handle(_) | TypeDefKind::Resource | TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => {
            Vec::new()
        }
        other => panic!("a type that this test does not know: {other:?}"),
    };
    for part in &parts {
        mentioned(resolve, part, found);
    }
}

/// Builds a component that exports `call0`, `call1`, … for the imports in their order.
fn component(imports: &[Import]) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_dir(wit()).unwrap();
    let exports: String =
        (0..imports.len()).map(|number| format!("export call{number}: func();\n")).collect();
    let world =
        format!("package test:reach;\nworld reach {{ include packhouse:format/imports@0.1.0;\n{exports} }}");
    let package = resolve.push_str("reach.wit", &world).unwrap();
    let world = resolve.packages[package].worlds["reach"];
    let mut module = wat::parse_str(module(imports)).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
}

fn module(imports: &[Import]) -> String {
    let (mut declared, mut calls) = (String::new(), String::new());
    for (number, Import { interface, name, params, results, .. }) in imports.iter().enumerate() {
        let words = |types: &[WasmType]| types.iter().map(|it| core(*it)).collect::<Vec<_>>();
        let (given, made) = (words(params).join(" "), words(results).join(" "));
        declared += &format!(
            "(import \"packhouse:format/{interface}@0.1.0\" \"{name}\" \
             (func $f{number} (param {given}) (result {made})))\n"
        );
        let zeros: String = words(params).iter().map(|it| format!("{it}.const 0 ")).collect();
        let drops = "drop ".repeat(results.len());
        calls += &format!("(func (export \"call{number}\") {zeros} call $f{number} {drops})\n");
    }
    format!(
        "(module {declared} (memory (export \"memory\") 1) {calls} \
         (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) i32.const 4096))"
    )
}

fn core(it: WasmType) -> &'static str {
    match it {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
    }
}
