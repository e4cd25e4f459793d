//! A policy as a component: the only place that knows generated code.

use core::marker::PhantomData;

use dlmalloc::GlobalDlmalloc;
pub use generated::export_policy_component;
pub use wit_bindgen;

use crate::{Advisory, Context, Facts, File, Policy, Provenance, Purpose, Ruling, settings};
use generated::exports::packhouse::policy::policy::{self as wit, Guest};

// A memory that grows costs the host more than most of what is allocated in it.
#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

/// The world, as wit-bindgen makes it.
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated: the canonical ABI")]
pub mod generated {
    wit_bindgen::generate!({
        world: "policy-component",
        path: "../../wit/policy-v0.1",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_policy_component",
        runtime_path: "::packhouse_policy::__private::wit_bindgen::rt",
    });
}

/// A policy as a component.
pub struct Component<P>(PhantomData<P>);

impl<P: Policy> Guest for Component<P> {
    fn describe() -> String {
        P::describe().to_json()
    }

    fn check(text: String) -> Result<(), String> {
        settings::<P>(&text).map(drop)
    }

    fn judge(text: String, context: wit::Context, versions: Vec<wit::Facts>) -> Vec<wit::Ruling> {
        let context = of_context(context);
        match settings::<P>(&text) {
            Ok(settings) => versions
                .into_iter()
                .map(|version| of_ruling(P::judge(&settings, &context, &of_facts(version))))
                .collect(),
            Err(wrong) => {
                let sentence = format!("The policy's settings cannot be read: {wrong}");
                versions.iter().map(|_| wit::Ruling::Deny(sentence.clone())).collect()
            }
        }
    }
}

fn of_context(context: wit::Context) -> Context {
    Context {
        purpose: match context.purpose {
            wit::Purpose::Publish => Purpose::Publish,
            wit::Purpose::Fetch => Purpose::Fetch,
            wit::Purpose::List => Purpose::List,
            wit::Purpose::Preview => Purpose::Preview,
        },
        now: context.now,
        format: context.format,
        repository: context.repository,
        kind: context.kind,
        upstream: context.upstream,
        caller: context.caller,
        names_in_use: context.names_in_use,
    }
}

fn of_facts(facts: wit::Facts) -> Facts {
    let file = |file: wit::File| File { path: file.path, size: file.size, digest: file.digest };
    let provenance = |one: wit::Provenance| Provenance {
        identity: one.identity,
        issuer: one.issuer,
        source_repository: one.source_repository,
        commit: one.commit,
        digest: one.digest,
        verified: one.verified,
    };
    let advisory = |one: wit::Advisory| Advisory {
        id: one.id,
        severity: one.severity,
        malware: one.malware,
        summary: one.summary,
    };
    Facts {
        name: facts.name,
        version: facts.version,
        published: facts.published,
        state: facts.state,
        license: facts.license,
        files: facts.files.into_iter().map(file).collect(),
        properties: facts.properties,
        provenance: facts.provenance.into_iter().map(provenance).collect(),
        advisories: facts.advisories.into_iter().map(advisory).collect(),
    }
}

fn of_ruling(ruling: Ruling) -> wit::Ruling {
    match ruling {
        Ruling::Allow => wit::Ruling::Allow,
        Ruling::Warn(sentence) => wit::Ruling::Warn(sentence),
        Ruling::Hold { sentence, until } => wit::Ruling::Hold(wit::Hold { sentence, until }),
        Ruling::Deny(sentence) => wit::Ruling::Deny(sentence),
    }
}
