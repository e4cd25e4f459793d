//! Format plugins as Wasm components: engine, loading, limits, one file for each import. No HTTP server here.
//!
//! [`Runtime::load`] compiles every `*.wasm` of the plugin folder and asks each what it is. A request is then put to its
//! [`Plugin`] in up to three calls: [`Plugin::route`] (pure), [`Plugin::check`] (reads only), [`Plugin::handle`]. Every call has a
//! deadline and limits of its own, storage handles that match the [`Intent`], and a fresh store and instance, except that the
//! `handle` of a read goes on in the instance of its `route` ([`RoutedInstance`]). No two requests share one.

mod ahead;
mod answer;
mod aside;
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
mod durable;
mod engine;
mod error;
mod exports;
mod folder;
mod footprint;
mod host_error;
mod imports;
mod instance;
mod joined;
mod kept_descriptions;
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
mod presentation;
mod reads;
mod recording;
mod request;
mod retained;
mod routed;
mod runtime;
mod said;
mod services;
mod state;
mod trial;
mod trusted_folder;
mod view;

// Compiles the body of an `async fn` here, and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use ahead::{Ahead, CompiledAhead, Precompiled, precompile};
pub use answer::{Answer, Content, Failure, Problem};
pub use aside::Aside;
pub use call::{Appended, Call, Moved, Part, VersionState};
pub use compiler::{Compiling, Work, compiling};
pub use compiling_process::{CompilingProcess, NOT_COMPILED, compile_component, receive_component};
pub use component_file::{MAX_COMPONENT_BYTES, component_files, component_name, read_component};
pub use config::{Limits, PluginConfig, RuntimeConfig};
pub use description::{
    AuthorizationForm, Challenge, ChallengeParameter, ChallengeScheme, Claim, ClientTemplate, CodeKind,
    Description, DescriptionLimits, ErrorFormat, ErrorStyle, ErrorTemplate, Exchange, ExchangeRefusal, Gives,
    InstallTemplate, NamedChallenge, NamedLimit, PlacedMembers, Places, PurlForm, Purpose, RefusalWords,
    SentencePlace, Setting, SettingKind, ShownSentence, TagKeys, Template, TokenService, TrustedPublishing,
    excess_of, fill, fill_members, fill_text,
};
pub use engine::EngineOptions;
pub use error::{CallError, LoadError};
pub use joined::{Cut, Joined, JoinedPart};
pub use load::side_by_side;
pub use package_bounds::PackageBounds;
pub use packhouse_names::{
    AffectedVersions, Folding, JudgedReleases, NamePatterns, Place, Release, ReleaseVerdict,
};
pub use plugin::{MAX_COMPARED, Plugin};
pub use plugin_set::{Awaited, AwaitedComponents, PluginSet, Serving};
pub use policy::{
    IgnoredFact, MAX_BATCH, MAX_NAMES, PolicyAdvisory, PolicyComponent, PolicyComponents, PolicyContext,
    PolicyDescription, PolicyFacts, PolicyFile, PolicyOutcome, PolicyProvenance, PolicyPurpose,
    PolicyRecording, PolicyReplayed, RefusedPolicy, Ruling, WantedFact, purpose_word, replay_policy,
};
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
    AdvisoryService, CacheUse, Fetch, Freshness, IdentityService, Login, LoginState, MAX_TOLD_BYTES,
    PolicyService, PublicKey, Reply, ReplyLifetime, ServiceError, ServiceFuture, Services, Signature,
    SigningService, TokenView, UpstreamService,
};
pub use trial::{Trial, TrialMode, add_time};
pub use view::RepositoryView;
