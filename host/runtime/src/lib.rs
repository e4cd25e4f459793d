//! Format plugins as Wasm components: engine, loading, limits, one file for each import. This crate
//! contains no HTTP server.
//!
//! [`Runtime::load`] compiles every `*.wasm` of the plugin folder and asks each for its
//! description. A request then reaches its [`Plugin`] in up to three calls: [`Plugin::route`]
//! (pure), [`Plugin::check`] (reads only), [`Plugin::handle`]. Every call has its own deadline and
//! limits, storage handles that match the [`Intent`], and a fresh store and instance. One
//! exception: the `handle` of a read continues in the instance of its `route` ([`RoutedInstance`]).
//! No two requests share an instance.

mod answer;
mod bindings;
mod call;
mod clock;
mod compiled_files;
mod compiler;
mod compiling_process;
mod component_file;
mod config;
mod contract;
mod description;
mod description_cache;
mod durable;
mod engine;
mod error;
mod exports;
mod folder;
mod footprint;
mod guest_stdio;
mod host_error;
mod imports;
mod instance;
mod joined;
mod limits;
mod load;
mod loader;
mod memos;
mod meters;
mod open_requests;
mod package_bounds;
mod path_pattern;
mod plugin;
mod plugin_set;
mod policy;
mod precompile;
mod presentation;
mod reads;
mod recording;
mod request;
mod retained;
mod routed;
mod runtime;
mod services;
mod state;
mod trusted_folder;
mod view;

// Boxing makes the compiler generate the body of an `async fn` in this crate, and not in each crate
// that awaits it.
use async_recursion::async_recursion as boxed;

pub use answer::{Answer, Content, Failure, Problem};
pub use call::{Appended, Call, Moved, Part, VersionState};
pub use compiler::{Compiling, Work, compiling};
pub use compiling_process::{CompilingProcess, NOT_COMPILED, compile_component, receive_component};
pub use component_file::{MAX_COMPONENT_BYTES, component_files, component_name, read_component};
pub use config::{Limits, PluginConfig, RuntimeConfig};
pub use description::{
    AuthorizationForm, Challenge, ChallengeParameter, ChallengeScheme, Claim, ClientSentence, ClientTemplate,
    CodeKind, Description, DescriptionLimits, ErrorFormat, ErrorStyle, ErrorTemplate, Exchange,
    ExchangeRefusal, ExchangeResult, InstallTemplate, NamedChallenge, NamedLimit, PlacedMembers, PurlForm,
    Purpose, RefusalWords, SentencePlace, Setting, SettingKind, SettingUnit, TagKeys, Template,
    TemplateValues, TokenService, TrustedPublishing, excess_of, fill, fill_members, fill_text,
};
pub use engine::EngineOptions;
pub use error::{CallError, LoadError};
pub use joined::{Cut, Joined, JoinedPart};
pub use load::parallel_compilations;
pub use package_bounds::{LimitKind, PackageBounds, PackageLimit, PackageRefusal};
pub use packhouse_names::{
    AffectedVersions, Folding, JudgedReleases, NamePatterns, Place, Release, ReleaseVerdict, glob_match,
};
pub use plugin::{MAX_COMPARED, Plugin};
pub use plugin_set::{Awaited, AwaitedComponents, PluginSet};
pub use policy::{
    IgnoredFact, MAX_BATCH, MAX_NAMES, OptionalFact, PolicyAdvisory, PolicyComponent, PolicyComponents,
    PolicyContext, PolicyDescription, PolicyFacts, PolicyFile, PolicyOutcome, PolicyProvenance,
    PolicyPurpose, PolicyRecording, PolicyReplayed, RefusedPolicy, Ruling, purpose_word, replay_policy,
};
pub use precompile::{Precompiled, PrecompiledComponent, Precompiler, precompile};
pub use presentation::{
    Attestation, Dependency, History, Image, Layer, Platform, Presentation, Readme, Referrer,
};
pub use reads::Reads;
pub use recording::{
    Armed, Difference, Finished, RecordedAnswer, RecordedCall, RecordedFailure, RecordedImport,
    RecordedLimits, RecordedOutcome, RecordedRepository, RecordedRequest, RecordedWasi, Recorder, Recording,
    ReplayError, Replayed, Replayer, replay, replay_bytes,
};
pub use request::{Action, BodyPlan, Intent, Looked, RequestHead};
pub use retained::{NeededVersion, Unshown, UnshownPage, VersionFacts};
pub use routed::{Routed, RoutedInstance};
pub use runtime::{Examined, Inspection, Runtime, inspect, inspect_bytes, inspect_with};
pub use services::{
    AdvisoryService, CacheUse, Fetch, Freshness, IdentityService, Login, LoginState, MAX_ADVISORY_BYTES,
    PolicyService, PublicKey, Reply, ReplyLifetime, ServiceError, ServiceFuture, Services, Signature,
    SigningService, TokenView, UpstreamService,
};
pub use view::RepositoryView;
