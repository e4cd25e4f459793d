//! Border of the contract: every call of an import passes through this module. Without a tape, the
//! call goes straight to the host. A tape either records the arguments and the answer, or supplies
//! the answer. One table lists all imports, so that none is forgotten: the compiler reports a
//! missing one.

use wasmtime::component::{HasData, Linker, Resource};

use crate::bindings::packhouse::format as wit;
use crate::host_error::HostError;
use crate::recording::{AnswerSource, RecordableResult, TraceValue};
use crate::state::HostState;
use crate::state::blobs::{BlobRep, UploadRep, WriterRep};
use crate::state::http::{IntentRep, RequestRep, ResponseOptionsRep};
use crate::state::memo::MakingRep;
use crate::state::records::RepositoryRep;
use crate::state::transaction::TransactionRep;
use crate::state::upstream::{FetchRep, ReplyRep};

/// The host's functions as the guest calls them.
pub(crate) struct RecordedHost<'a>(&'a mut HostState);

/// Type that tells the linker how to get a [`RecordedHost`] from the store's data.
struct HasRecordedHost;

impl HasData for HasRecordedHost {
    type Data<'a> = RecordedHost<'a>;
}

type Plain<T> = wasmtime::Result<T>;
type Fails<T> = Result<T, HostError>;
type Pairs = Vec<(String, String)>;

/// Returns true if the import waits at most as long as a database look-up takes, or gives up the
/// call's turn itself. Before any other import, the caller gives the turn to another call.
fn is_look_up(import: &str) -> bool {
    if let Some(function) = import.strip_prefix("records.repository.") {
        return matches!(function, "get" | "scan" | "keys" | "search" | "runs" | "withheld" | "blob");
    }
    matches!(import, "blobs.blob.size" | "blobs.blob.digest")
}

/// Implements one of the contract's traits: `plain` functions answer at once, `waiting` functions
/// may wait, and `drop` is for a resource.
macro_rules! recorded {
    ($($trait:path as $prefix:literal {
        $(plain $plain:ident($($parameter:ident: $of:ty),*) -> $answer:ty;)*
        $(waiting $waiting:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*
        $(drop $dropped:ty;)?
    })*) => {$(
        impl $trait for RecordedHost<'_> {
            $(fn $plain(&mut self, $($parameter: $of),*) -> $answer {
                let state = &mut *self.0;
                let Some(tape) = &mut state.tape else {
                    return <HostState as $trait>::$plain(state, $($parameter),*);
                };
                let import = concat!($prefix, ".", stringify!($plain));
                match tape.ask(import, |_to| vec![$(TraceValue::write(&$parameter, _to)),*]) {
                    AnswerSource::Recorded(answer) => RecordableResult::read(&answer),
                    AnswerSource::Host(place) => {
                        let answer = <HostState as $trait>::$plain(state, $($parameter),*);
                        state.record_answer(place, &answer);
                        answer
                    }
                }
            })*

            $(async fn $waiting(&mut self, $($argument: $kind),*) -> $result {
                let state = &mut *self.0;
                let import = concat!($prefix, ".", stringify!($waiting));
                if !is_look_up(import) {
                    state.turn = None;
                }
                let Some(tape) = &mut state.tape else {
                    return <HostState as $trait>::$waiting(state, $($argument),*).await;
                };
                match tape.ask(import, |_to| vec![$(TraceValue::write(&$argument, _to)),*]) {
                    AnswerSource::Recorded(answer) => RecordableResult::read(&answer),
                    AnswerSource::Host(place) => {
                        let answer = <HostState as $trait>::$waiting(state, $($argument),*).await;
                        state.record_answer(place, &answer);
                        answer
                    }
                }
            })*

            // Dropping a handle is not recorded, and in a replay nothing is behind the handle.
            $(fn drop(&mut self, handle: Resource<$dropped>) -> Plain<()> {
                if self.0.is_replayed() { Ok(()) } else { <HostState as $trait>::drop(self.0, handle) }
            })?
        }
    )*};
}

impl wit::types::Host for RecordedHost<'_> {
    fn convert_error(&mut self, error: HostError) -> Plain<wit::types::Error> {
        wit::types::Host::convert_error(self.0, error)
    }
}

impl wit::http::Host for RecordedHost<'_> {}
impl wit::blobs::Host for RecordedHost<'_> {}
impl wit::records::Host for RecordedHost<'_> {}

recorded! {
    wit::host::Host as "host" {
        plain log(level: String, message: String, fields: Pairs) -> Plain<()>;
        plain now() -> Plain<u64>;
    }
    wit::http::HostRequest as "http.request" {
        plain method(request: Resource<RequestRep>) -> Plain<String>;
        plain claim(request: Resource<RequestRep>) -> Plain<Option<String>>;
        plain path(request: Resource<RequestRep>) -> Plain<Vec<String>>;
        plain query(request: Resource<RequestRep>) -> Plain<Pairs>;
        plain headers(request: Resource<RequestRep>) -> Plain<Vec<wit::http::Header>>;
        plain address(request: Resource<RequestRep>) -> Plain<String>;
        plain caller(request: Resource<RequestRep>) -> Plain<Option<String>>;
        plain moved(request: Resource<RequestRep>) -> Plain<bool>;
        plain take_body(request: Resource<RequestRep>) -> Plain<Option<Resource<BlobRep>>>;
        plain take_parts(request: Resource<RequestRep>) -> Plain<Vec<wit::http::Part>>;
        drop RequestRep;
    }
    wit::http::HostIntent as "http.intent" {
        plain new(action: String, subject: Option<String>) -> Plain<Resource<IntentRep>>;
        plain body(intent: Resource<IntentRep>, limit: u64) -> Plain<()>;
        plain parts(intent: Resource<IntentRep>, limit: u64) -> Plain<()>;
        plain append(intent: Resource<IntentRep>, upload: String, offset: Option<u64>, limit: u64) -> Plain<()>;
        plain under(intent: Resource<IntentRep>, limit: String) -> Plain<()>;
        plain digests(intent: Resource<IntentRep>, algorithms: Vec<String>) -> Plain<()>;
        plain also_read(intent: Resource<IntentRep>, repository: String) -> Plain<()>;
        plain check(intent: Resource<IntentRep>) -> Plain<()>;
        plain for_publish(intent: Resource<IntentRep>) -> Plain<()>;
        plain about_package(intent: Resource<IntentRep>, name: String) -> Plain<()>;
        plain many_packages(intent: Resource<IntentRep>) -> Plain<()>;
        drop IntentRep;
    }
    wit::http::HostResponseOptions as "http.response-options" {
        plain new() -> Plain<Resource<ResponseOptionsRep>>;
        plain modified(options: Resource<ResponseOptionsRep>, at: u64) -> Plain<()>;
        drop ResponseOptionsRep;
    }
    wit::blobs::HostBlob as "blobs.blob" {
        waiting size(blob: Resource<BlobRep>) -> Fails<u64>;
        waiting digest(blob: Resource<BlobRep>, algorithm: String) -> Fails<String>;
        waiting read(blob: Resource<BlobRep>, offset: u64, length: u32) -> Fails<Vec<u8>>;
        waiting find(blob: Resource<BlobRep>, needle: Vec<u8>, start: u64, end: u64) -> Fails<Option<u64>>;
        waiting slice(blob: Resource<BlobRep>, offset: u64, length: u64) -> Fails<Resource<BlobRep>>;
        waiting decode(
            blob: Resource<BlobRep>, encoding: String, limit: u64, digests: Vec<String>
        ) -> Fails<Resource<BlobRep>>;
        drop BlobRep;
    }
    wit::blobs::HostWriter as "blobs.writer" {
        plain new() -> Plain<Resource<WriterRep>>;
        waiting write(writer: Resource<WriterRep>, bytes: Vec<u8>) -> Fails<()>;
        waiting append(writer: Resource<WriterRep>, bytes: Resource<BlobRep>) -> Fails<()>;
        waiting write_parts(writer: Resource<WriterRep>, parts: Vec<wit::blobs::Part>) -> Fails<()>;
        waiting finish(writer: Resource<WriterRep>) -> Fails<Resource<BlobRep>>;
        drop WriterRep;
    }
    wit::blobs::HostUpload as "blobs.upload" {
        plain note(upload: Resource<UploadRep>) -> Plain<String>;
        plain length(upload: Resource<UploadRep>) -> Plain<u64>;
        plain received(upload: Resource<UploadRep>) -> Plain<u64>;
        waiting finish(upload: Resource<UploadRep>) -> Fails<Resource<BlobRep>>;
        waiting abort(upload: Resource<UploadRep>) -> Fails<()>;
        drop UploadRep;
    }
    wit::records::HostTransaction as "records.transaction" {
        plain put(
            transaction: Resource<TransactionRep>, key: String, value: Vec<u8>,
            expect: wit::records::Expectation, blobs: Vec<String>
        ) -> Plain<()>;
        plain remove(
            transaction: Resource<TransactionRep>, key: String, expect: wit::records::Expectation
        ) -> Plain<()>;
        plain require(
            transaction: Resource<TransactionRep>, key: String, expect: wit::records::Expectation
        ) -> Plain<()>;
        plain show(transaction: Resource<TransactionRep>, version: wit::records::Version) -> Plain<()>;
        plain hide(transaction: Resource<TransactionRep>, id: wit::records::VersionId) -> Plain<()>;
        plain hide_file(
            transaction: Resource<TransactionRep>, id: wit::records::VersionId, path: String
        ) -> Plain<()>;
        plain document(
            transaction: Resource<TransactionRep>, document: wit::records::Document
        ) -> Plain<()>;
        plain attest(transaction: Resource<TransactionRep>, statement: wit::records::Statement) -> Plain<()>;
        plain about_package(transaction: Resource<TransactionRep>, name: String) -> Plain<()>;
        waiting commit(transaction: Resource<TransactionRep>) -> Fails<wit::records::Outcome>;
        drop TransactionRep;
    }
    wit::records::HostRepository as "records.repository" {
        plain name(repository: Resource<RepositoryRep>) -> Plain<String>;
        plain kind(repository: Resource<RepositoryRep>) -> Plain<String>;
        plain settings(repository: Resource<RepositoryRep>) -> Plain<String>;
        plain begin(repository: Resource<RepositoryRep>) -> Fails<Resource<TransactionRep>>;
        waiting get(repository: Resource<RepositoryRep>, key: String) -> Fails<Option<wit::records::Entry>>;
        waiting scan(
            repository: Resource<RepositoryRep>, prefix: String, after: Option<String>, limit: u32
        ) -> Fails<Vec<wit::records::Entry>>;
        waiting keys(
            repository: Resource<RepositoryRep>, prefix: String, delimiter: Option<String>,
            after: Option<String>, limit: u32
        ) -> Fails<Vec<String>>;
        waiting search(
            repository: Resource<RepositoryRep>, text: String, offset: u32, limit: u32
        ) -> Fails<wit::records::Matches>;
        waiting runs(
            repository: Resource<RepositoryRep>, prefix: String, after: Option<String>
        ) -> Fails<wit::records::RunList>;
        waiting withheld(repository: Resource<RepositoryRep>, names: Vec<String>) -> Fails<Vec<String>>;
        waiting blob(
            repository: Resource<RepositoryRep>, digest: String
        ) -> Fails<Option<Resource<BlobRep>>>;
        waiting keep(repository: Resource<RepositoryRep>, blob: Resource<BlobRep>) -> Fails<String>;
        waiting begin_upload(repository: Resource<RepositoryRep>, note: String) -> Fails<String>;
        waiting upload(
            repository: Resource<RepositoryRep>, name: String
        ) -> Fails<Option<Resource<UploadRep>>>;
        drop RepositoryRep;
    }
    wit::upstream::Host as "upstream" {
        plain leave_out(proxy: Resource<RepositoryRep>, reason: String) -> Plain<()>;
    }
    wit::upstream::HostFetch as "upstream.fetch" {
        plain new(method: String, target: String) -> Plain<Resource<FetchRep>>;
        plain header(fetch: Resource<FetchRep>, name: String, value: String) -> Plain<()>;
        plain body(fetch: Resource<FetchRep>, bytes: Vec<u8>) -> Plain<()>;
        plain fresh(fetch: Resource<FetchRep>, freshness: wit::upstream::Freshness) -> Plain<()>;
        plain expect(fetch: Resource<FetchRep>, digest: String) -> Plain<()>;
        plain limit(fetch: Resource<FetchRep>, bytes: u64) -> Plain<()>;
        plain show_as(fetch: Resource<FetchRep>, name: String, version: String, path: String) -> Plain<()>;
        plain part_of(fetch: Resource<FetchRep>, name: String, version: String, path: String) -> Plain<()>;
        plain metadata(fetch: Resource<FetchRep>) -> Plain<()>;
        plain start(fetch: Resource<FetchRep>, proxy: Resource<RepositoryRep>) -> Fails<Resource<ReplyRep>>;
        drop FetchRep;
    }
    wit::upstream::HostReply as "upstream.reply" {
        plain expect(reply: Resource<ReplyRep>, digest: String) -> Plain<()>;
        waiting status(reply: Resource<ReplyRep>) -> Fails<u16>;
        waiting headers(reply: Resource<ReplyRep>) -> Fails<Vec<wit::http::Header>>;
        waiting address(reply: Resource<ReplyRep>) -> Fails<String>;
        waiting body(reply: Resource<ReplyRep>) -> Fails<Resource<BlobRep>>;
        drop ReplyRep;
    }
    wit::releases::Host as "releases" {
        waiting judge(
            proxy: Resource<RepositoryRep>, name: String, releases: Vec<wit::releases::Release>
        ) -> Fails<Vec<wit::releases::Verdict>>;
        waiting judge_versions(
            proxy: Resource<RepositoryRep>, name: String, versions: Vec<wit::releases::KnownVersion>
        ) -> Fails<Vec<wit::releases::Verdict>>;
        waiting judge_with_reasons(
            proxy: Resource<RepositoryRep>, name: String, versions: Vec<wit::releases::KnownVersion>
        ) -> Fails<Vec<wit::releases::ReasonedVerdict>>;
        waiting judge_asked(
            proxy: Resource<RepositoryRep>, name: String, version: wit::releases::KnownVersion
        ) -> Fails<wit::releases::Verdict>;
    }
    wit::advisories::Host as "advisories" {
        waiting find(of: Resource<RepositoryRep>, names: Vec<String>) -> Fails<String>;
    }
    wit::identity::Host as "identity" {
        waiting begin_login(target: Resource<RepositoryRep>) -> Fails<wit::identity::Login>;
        waiting finish_login(id: String) -> Fails<wit::identity::LoginState>;
        waiting tokens() -> Fails<Vec<wit::identity::Token>>;
        waiting revoke(id: String) -> Fails<bool>;
    }
    wit::signing::Host as "signing" {
        waiting keys(target: Resource<RepositoryRep>) -> Fails<Vec<wit::signing::PublicKey>>;
        waiting sign(target: Resource<RepositoryRep>, message: Vec<u8>) -> Fails<wit::signing::Signature>;
    }
    wit::memo::Host as "memo" {
        plain find(of: Resource<RepositoryRep>, name: String) -> Fails<Option<Resource<BlobRep>>>;
        plain find_noted(
            of: Resource<RepositoryRep>, names: Vec<String>
        ) -> Fails<Vec<Option<wit::memo::Noted>>>;
    }
    wit::memo::HostMaking as "memo.making" {
        plain start(of: Resource<RepositoryRep>, name: String) -> Fails<Resource<MakingRep>>;
        plain finish(making: Resource<MakingRep>, bytes: Vec<u8>) -> Fails<Resource<BlobRep>>;
        plain finish_noted(
            making: Resource<MakingRep>, note: Vec<u8>, bytes: Vec<u8>
        ) -> Fails<Resource<BlobRep>>;
        drop MakingRep;
    }
}

/// Links every interface of the contract.
pub(super) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    macro_rules! offer {
        ($($interface:ident),*) => {
            $(wit::$interface::add_to_linker::<_, HasRecordedHost>(linker, |state| RecordedHost(state))?;)*
        };
    }
    offer!(types, host, http, blobs, records, upstream, releases, advisories, identity, signing, memo);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::state::Phase;

    /// Returns true if the call still holds its turn after an import, called with invalid handles.
    async fn keeps_its_turn(import: impl AsyncFnOnce(&mut RecordedHost<'_>)) -> bool {
        let mut state = HostState::within(Phase::Serve, "turns".into(), Arc::default(), Arc::default());
        let turns = Arc::new(Semaphore::new(1));
        state.turn = Some(Arc::clone(&turns).try_acquire_owned().unwrap());
        import(&mut RecordedHost(&mut state)).await;
        turns.available_permits() == 0
    }

    #[tokio::test]
    async fn a_call_that_waits_longer_than_a_look_up_gives_up_its_turn() {
        use wit::{blobs, identity, records, upstream};
        let get = async |host: &mut RecordedHost<'_>| {
            records::HostRepository::get(host, Resource::new_own(7), String::new()).await.unwrap_err();
        };
        assert!(keeps_its_turn(get).await);
        let digest = async |host: &mut RecordedHost<'_>| {
            blobs::HostBlob::digest(host, Resource::new_own(7), "sha256".into()).await.unwrap_err();
        };
        assert!(
            keeps_its_turn(digest).await,
            "most digests are known; it gives up its turn itself for others"
        );
        let status = async |host: &mut RecordedHost<'_>| {
            upstream::HostReply::status(host, Resource::new_own(7)).await.unwrap_err();
        };
        assert!(!keeps_its_turn(status).await);
        let read = async |host: &mut RecordedHost<'_>| {
            blobs::HostBlob::read(host, Resource::new_own(7), 0, 1).await.unwrap_err();
        };
        assert!(!keeps_its_turn(read).await);
        let commit = async |host: &mut RecordedHost<'_>| {
            records::HostTransaction::commit(host, Resource::new_own(7)).await.unwrap_err();
        };
        assert!(!keeps_its_turn(commit).await);
        let tokens = async |host: &mut RecordedHost<'_>| drop(identity::Host::tokens(host).await);
        assert!(!keeps_its_turn(tokens).await);
    }
}
