//! Tests that the memory host follows the contract.

mod releases;

use crate::MemoryHost;
use crate::blob::MemoryBlob;
use crate::call::Rights;
use crate::repository::MemoryRepository;
use crate::state;
use packhouse_sdk::Expectation::{Absent, Anything, Present, Revision};
use packhouse_sdk::host::HostFetch;
use packhouse_sdk::{
    Action, Blob, Context, Description, Digest, Error, Format, Outcome, Repository, Router, Statement,
    Transaction, Version, VersionDocument, VersionId,
};
use serde_json::json;

struct Empty;

impl Format for Empty {
    fn describe() -> Description {
        Description::new("empty", "1")
    }

    fn routes(_router: &mut Router) {}
}

/// Creates a host with a hosted repository `r`, another `s`, and a proxy `p`.
pub(crate) fn host() -> MemoryHost {
    let host = MemoryHost::new();
    for (name, kind) in [("r", "hosted"), ("s", "hosted"), ("p", "proxy")] {
        host.mount::<Empty>(name, kind, json!({}));
    }
    host
}

/// Starts a call with this action and the target `r`, and returns the repository of this name in
/// the call. An `action` of `None` stands for a check.
pub(crate) fn call(host: &MemoryHost, action: Option<Action>, name: &str) -> (Rights, Repository) {
    let rights = Rights::new(host.state.clone(), action, Some("r".to_owned()));
    let repository = MemoryRepository { rights: rights.clone(), name: name.to_owned(), received: None };
    (rights, Repository::new(Box::new(repository)))
}

fn publish(host: &MemoryHost) -> (Rights, Repository) {
    call(host, Some(Action::Publish), "r")
}

fn blob(bytes: &str) -> Blob {
    Blob::new(MemoryBlob::boxed(bytes.as_bytes()))
}

fn put(repository: &Repository, key: &str, expect: packhouse_sdk::Expectation, blobs: &[Digest]) -> Outcome {
    let mut change = repository.begin().unwrap();
    change.put(key, b"value", expect, blobs);
    change.commit().unwrap()
}

#[test]
fn expectations_hold_and_a_lost_race_is_an_outcome() {
    let host = host();
    let (_, r) = publish(&host);
    assert_eq!(put(&r, "a", Absent, &[]), Outcome::Applied(1));
    assert_eq!(put(&r, "a", Absent, &[]), Outcome::Stale("a".to_owned()));
    assert_eq!(put(&r, "b", Present, &[]), Outcome::Stale("b".to_owned()));
    assert_eq!(put(&r, "a", Revision(1), &[]), Outcome::Applied(2));
    assert_eq!(put(&r, "a", Revision(1), &[]), Outcome::Stale("a".to_owned()));

    let mut change = r.begin().unwrap();
    change.put("c", b"", Anything, &[]).require("z", Absent).require("y", Present).remove("x", Present);
    assert_eq!(
        change.commit().unwrap(),
        Outcome::Stale("y".to_owned()),
        "the outcome names the first stale key, in the order of the calls"
    );
    assert_eq!(r.get("c").unwrap(), None, "a stale commit writes no record");
}

#[test]
fn a_revision_never_comes_twice() {
    let host = host();
    let (_, r) = publish(&host);
    assert_eq!(put(&r, "a", Anything, &[]), Outcome::Applied(1));
    let mut change = r.begin().unwrap();
    change.remove("a", Revision(1)).remove("never", Anything);
    assert_eq!(change.commit().unwrap(), Outcome::Applied(2));
    assert_eq!(put(&r, "a", Anything, &[]), Outcome::Applied(3));
    assert_eq!(r.get("a").unwrap().unwrap().revision, 3);
    let mut change = r.begin().unwrap();
    change.put("b", b"first", Absent, &[]).put("b", b"second", Anything, &[]);
    assert_eq!(change.commit().unwrap(), Outcome::Applied(4));
    assert_eq!(r.get("b").unwrap().unwrap().value, b"second", "a later change replaces the earlier");
}

#[test]
fn a_commit_beyond_its_limits_is_invalid() {
    let host = host();
    let (_, r) = publish(&host);
    let long = "k".repeat(1025);
    for key in ["", "a\0b", long.as_str()] {
        let mut change = r.begin().unwrap();
        change.put(key, b"", Anything, &[]);
        assert!(matches!(change.commit(), Err(Error::Invalid(_))), "{key:.9}");
    }
    let mut change = r.begin().unwrap();
    change.put("a", &vec![0; (1 << 20) + 1], Anything, &[]);
    assert!(matches!(change.commit(), Err(Error::Invalid(_))));
    let mut change = r.begin().unwrap();
    for n in 0..10_001 {
        change.remove(&n.to_string(), Anything);
    }
    assert!(matches!(change.commit(), Err(Error::Invalid(_))));
}

#[test]
fn a_commit_names_only_what_the_repository_holds() {
    let host = host();
    let (rights, s) = call(&host, Some(Action::Publish), "s");
    assert_eq!(
        s.keep(&blob("x")).unwrap_err(),
        Error::Denied,
        "the target of the call is another repository"
    );
    drop(rights);

    let (rights, r) = publish(&host);
    let digest = blob("x").sha256().unwrap();
    let unknown = Outcome::UnknownBlobs(vec![digest.clone()]);
    let twice = [digest.clone(), digest.clone()];
    assert_eq!(put(&r, "a", Anything, &twice), unknown);
    assert_eq!(r.keep(&blob("x")).unwrap(), digest);
    assert!(r.blob(&digest).unwrap().is_some(), "this call sees what it kept");
    assert!(s.blob(&digest).unwrap().is_none(), "another repository does not");
    let (_, other) = publish(&host);
    assert!(other.blob(&digest).unwrap().is_none(), "another call finds the blob only after this call");
    assert_eq!(put(&r, "a", Anything, &twice), Outcome::Applied(1));
    drop(rights);
    assert!(other.blob(&digest).unwrap().is_some(), "a blob that a commit named stays if the call fails");
}

#[test]
fn a_blob_lasts_for_the_grace_period_or_while_a_record_names_it() {
    let host = host();
    let (rights, r) = publish(&host);
    let (named, unnamed) = (r.keep(&blob("named")).unwrap(), r.keep(&blob("unnamed")).unwrap());
    assert_eq!(put(&r, "a", Anything, std::slice::from_ref(&named)), Outcome::Applied(1));
    rights.settle();
    let (failed, _) = {
        let (rights, r) = publish(&host);
        (r.keep(&blob("dropped")).unwrap(), rights)
    };
    let (_, r) = publish(&host);
    assert!(r.blob(&unnamed).unwrap().is_some());
    assert!(r.blob(&failed).unwrap().is_none(), "a call that does not succeed keeps nothing");
    host.end_grace();
    assert!(r.blob(&named).unwrap().is_some());
    assert!(r.blob(&unnamed).unwrap().is_none());
    assert!(matches!(r.blob(&Digest::new("md5", &"0".repeat(32)).unwrap()), Err(Error::Invalid(_))));
}

#[test]
fn the_rights_of_a_call_match_its_intent() {
    let host = host();
    let table = [
        (None, "r", false, false),
        (Some(Action::Open), "r", false, false),
        (Some(Action::Read), "r", false, false),
        (Some(Action::Publish), "r", true, true),
        (Some(Action::Delete), "r", true, true),
        (Some(Action::Publish), "s", false, false),
        // A proxy's records cache its upstream.
        (Some(Action::Read), "p", true, false),
        (None, "p", false, false),
    ];
    for (action, name, records, uploads) in table {
        let (_, repository) = call(&host, action, name);
        assert_eq!(repository.begin().is_ok(), records, "{action:?} {name} begin");
        assert_eq!(repository.keep(&blob("x")).is_ok(), records, "{action:?} {name} keep");
        assert_eq!(repository.begin_upload("").is_ok(), uploads, "{action:?} {name} begin_upload");
    }
}

#[test]
fn keys_come_in_order_and_a_level_at_a_time() {
    let host = host();
    let (_, r) = publish(&host);
    for key in ["a/1", "a/b/1", "a/b/2", "a/c", "a-", "b/1"] {
        assert!(matches!(put(&r, key, Absent, &[]), Outcome::Applied(_)));
    }
    let keys = |keys: packhouse_sdk::Keys| keys.map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(keys(r.keys("a")), ["a-", "a/1", "a/b/1", "a/b/2", "a/c"]);
    assert_eq!(keys(r.keys("").delimiter("/")), ["a-", "a/", "b/"]);
    assert_eq!(keys(r.keys("a/").delimiter("/")), ["a/1", "a/b/", "a/c"]);
    // A page can end at a cut key. The next page then continues after all keys that the cut key
    // stands for.
    assert_eq!(keys(r.keys("a/").delimiter("/").page(1)), ["a/1", "a/b/", "a/c"]);
    assert_eq!(keys(r.keys("a/").delimiter("/").after("a/b/")), ["a/c"]);
    assert_eq!(keys(r.keys("a/").after("0")), ["a/1", "a/b/1", "a/b/2", "a/c"]);
    let scanned: Vec<_> = r.scan("a/b").page(1).map(|entry| entry.unwrap().key).collect();
    assert_eq!(scanned, ["a/b/1", "a/b/2"]);
    let wrong: Vec<_> = r.keys("").delimiter("//").collect();
    assert!(matches!(wrong.as_slice(), [Err(Error::Invalid(_))]), "the iterator ends after an error");
}

#[test]
fn a_page_of_records_is_a_mebibyte_at_most_but_never_empty() {
    let host = host();
    let (_, r) = publish(&host);
    let mut change = r.begin().unwrap();
    for key in ["a", "b", "c"] {
        change.put(key, &vec![0; 1 << 20], Absent, &[]);
    }
    assert_eq!(change.commit().unwrap(), Outcome::Applied(1));
    assert_eq!(r.scan("").count(), 3);
}

#[test]
fn versions_are_listed_file_by_file() {
    let host = host();
    let (_, r) = publish(&host);
    let digest = blob("x").sha256().unwrap();
    let id = VersionId::new("lib", "1");
    let show = |version: Version| {
        let mut change = r.begin().unwrap();
        change.show(&version);
        assert!(matches!(change.commit().unwrap(), Outcome::Applied(_)));
    };
    show(Version::new("lib", "1").summary("A library of Words").file("a", digest.clone(), 1));
    show(Version::new("lib", "1").summary("words").file("b", digest.clone(), 1));
    show(Version::new("words", "2"));
    assert_eq!(host.effects("r").shown.len(), 3, "a file that was listed stays");
    assert_eq!(r.search("WORDS", 0, 9).unwrap().names, ["words", "lib"], "a match in the name comes first");
    assert_eq!(r.search("", 1, 1).unwrap().names, ["words"]);
    assert_eq!(r.search("", 1, 1).unwrap().total, 2);
    let mut change = r.begin().unwrap();
    change.hide_file(&id, "a").hide_file(&id, "b").hide(&VersionId::new("never", "1"));
    assert!(matches!(change.commit().unwrap(), Outcome::Applied(_)));
    assert_eq!(host.effects("r").shown, ["words 2"], "a version without files is no longer listed");
}

#[test]
fn statements_go_with_what_they_are_about() {
    let host = host();
    let (_, r) = publish(&host);
    let digest = || blob("x").sha256().unwrap();
    let id = || VersionId::new("lib", "1");
    let of =
        |file: &str, source: &str| Statement::new(id(), "kind", digest(), source).of_file(file).at(source);
    let apply = |fill: &dyn Fn(&mut Transaction)| {
        let mut change = r.begin().unwrap();
        fill(&mut change);
        change.commit().map(|outcome| assert!(matches!(outcome, Outcome::Applied(_))))
    };
    let stated = || host.statements("r").into_iter().map(|one| one.source).collect::<Vec<_>>();
    let attest = |statement: &Statement| {
        apply(&|change| {
            change.attest(statement);
        })
    };
    attest(&of("a", "early")).unwrap();
    assert!(stated().is_empty(), "the version is not listed");
    let version = || Version::new("lib", "1").file("a", digest(), 1).file("b", digest(), 1);
    apply(&|change| {
        change.show(&version());
        for source in ["a.sig", "a.sig", "b.sig"] {
            change.attest(&of(&source[..1], source));
        }
    })
    .unwrap();
    assert_eq!(stated(), ["a.sig", "b.sig"], "a duplicate is dropped");
    let hide = |path: &str| {
        apply(&|change| {
            change.hide_file(&id(), path);
        })
    };
    hide("a").unwrap();
    assert_eq!(stated(), ["b.sig"]);
    hide("b.sig").unwrap();
    assert!(stated().is_empty(), "hiding the source of a statement removes the statement");
    let sha1 = Digest::new("sha1", &"0".repeat(40)).unwrap();
    for wrong in [Statement::new(id(), "", digest(), ""), Statement::new(id(), "kind", sha1, "")] {
        assert!(attest(&wrong).is_err());
    }
}

#[test]
fn documents_go_with_what_they_are_about() {
    let host = host();
    let (_, r) = publish(&host);
    let digest = || blob("x").sha256().unwrap();
    let of = |file: &str, source: &str, size: u64| {
        VersionDocument::new(VersionId::new("lib", "1"), "spdx", VersionDocument::SPDX_JSON, digest(), size)
            .of_file(file)
            .at(source)
            .titled("bom")
    };
    let apply = |fill: &dyn Fn(&mut Transaction)| {
        let mut change = r.begin().unwrap();
        fill(&mut change);
        change.commit().map(|outcome| assert!(matches!(outcome, Outcome::Applied(_))))
    };
    let listed = || host.documents("r").into_iter().map(|one| (one.path, one.size)).collect::<Vec<_>>();
    let add = |document: &VersionDocument| {
        apply(&|change| {
            change.document(document);
        })
    };
    add(&of("a", "", 1)).unwrap();
    assert!(listed().is_empty(), "the version is not listed");
    apply(&|change| {
        change.show(&Version::new("lib", "1").file("a", digest(), 1).file("b", digest(), 1));
        change.document(&of("a", "", 1)).document(&of("b", "at", 2)).document(&of("a", "", 3));
    })
    .unwrap();
    assert_eq!(
        listed(),
        [("b".to_owned(), 2), ("a".to_owned(), 3)],
        "a later document replaces an earlier one of the same path, source and title"
    );
    for path in ["a", "at"] {
        apply(&|change| {
            change.hide_file(&VersionId::new("lib", "1"), path);
        })
        .unwrap();
    }
    assert!(listed().is_empty(), "hiding the file or the source of a document removes the document");
    let sha1 = Digest::new("sha1", &"0".repeat(40)).unwrap();
    for wrong in [
        VersionDocument { form: String::new(), ..of("a", "", 1) },
        VersionDocument { digest: sha1, ..of("a", "", 1) },
    ] {
        assert!(add(&wrong).is_err());
    }
}

#[test]
fn blobs_are_read_searched_cut_and_decoded() {
    let bytes = blob("hello world");
    assert_eq!(bytes.read(6, 100).unwrap(), b"world");
    assert_eq!(bytes.find(b"o", 5, 8).unwrap(), Some(7));
    assert_eq!(
        bytes.find(b"world", 0, 10).unwrap(),
        None,
        "the needle must lie wholly between start and end"
    );
    assert!(bytes.find(b"", 0, 1).is_err() && bytes.find(b"o", 2, 1).is_err());
    assert_eq!(bytes.slice(6, 5).unwrap().text(5).unwrap(), "world");
    assert!(bytes.slice(6, 6).is_err());
    assert_eq!(blob("aGVsbG8=").decode("base64", 5, &[]).unwrap().text(9).unwrap(), "hello");
    assert_eq!(blob("aGVsbG8=").decode("base64", 4, &[]).err(), Some(Error::TooLarge(5)));
    assert!(matches!(blob("?").decode("base64", 5, &[]).err(), Some(Error::Invalid(_))));
    assert!(matches!(blob("x").decode("gzip", 5, &[]).err(), Some(Error::Invalid(_))));
    assert!(matches!(blob("x").decode("rot13", 5, &[]).err(), Some(Error::Invalid(_))));
    let zeros = zstd::encode_all(vec![0; 1000].as_slice(), 0).unwrap();
    let zeros = Blob::new(MemoryBlob::boxed(zeros));
    assert_eq!(zeros.decode("zstd", 1000, &["md5"]).unwrap().size().unwrap(), 1000);
    assert_eq!(zeros.decode("zstd", 999, &[]).err(), Some(Error::TooLarge(1000)));
}

#[test]
fn a_check_sees_no_body_and_a_context_knows_its_target() {
    let host = host();
    let (rights, r) = call(&host, None, "r");
    let calls = crate::call::CallHost { rights, caller: None, lines: Default::default() };
    let cx = Context::new(Box::new(calls), Some(r), Vec::new());
    assert_eq!(cx.target().unwrap().name(), "r");
    (0..200).for_each(|_| cx.log().info("again", &[]));
    assert_eq!(host.log().len(), 100, "the limit of lines in a call");
    assert_eq!(cx.now(), 1_767_225_600_000);
    assert!(cx.identity().tokens().unwrap().is_empty());
}

#[test]
fn an_upstream_gives_the_response_that_was_set() {
    let host = host();
    host.answer_upstream("GET", "/a.jar", 200, &[("etag", "\"1\"")], b"bytes");
    host.answer_upstream("GET", "/gone", 404, &[], b"");
    host.redirect_upstream("GET", "/gone", "https://elsewhere.test/gone");
    host.answer_upstream("GET", "/secret", 403, &[], b"");
    host.fail_upstream("GET", "/down", Error::Unavailable("down".to_owned()));
    let rights = Rights::new(host.state.clone(), Some(Action::Read), Some("p".to_owned()));
    let proxy = MemoryRepository { rights: rights.clone(), name: "p".to_owned(), received: None };
    let fetch = |method: &str, target: &str| -> Box<dyn HostFetch> {
        Box::new(crate::upstream::MemoryFetch::new(host.state.clone(), method, target))
    };

    let sha256 = state::digest("sha256", b"bytes").unwrap();
    let mut file = fetch("GET", "/a.jar");
    file.header("Accept", "*/*");
    file.expect(&sha256);
    file.show_as("a", "1", "a.jar");
    let reply = file.start(&proxy).unwrap();
    assert_eq!((reply.status().unwrap(), reply.body().unwrap().size().unwrap()), (200, 5));
    assert_eq!(host.effects("p").shown, [format!("a 1 a.jar {sha256}")]);
    let request = host.fetches().remove(0);
    assert_eq!((request.repository.as_str(), request.expect.as_slice()), ("p", [sha256].as_slice()));
    assert_eq!(request.headers, [("accept".to_owned(), "*/*".to_owned())]);

    let mut wrong = fetch("GET", "/a.jar").start(&proxy).unwrap();
    wrong.expect(&state::digest("md5", b"others").unwrap());
    assert!(matches!(wrong.body(), Err(Error::Unavailable(_))));
    let mut large = fetch("GET", "/a.jar");
    large.limit(4);
    assert!(matches!(large.start(&proxy).unwrap().body(), Err(Error::TooLarge(5))));
    let head = fetch("HEAD", "/a.jar").start(&proxy).unwrap();
    assert_eq!((head.status().unwrap(), head.body().unwrap().size().unwrap()), (200, 0));
    let gone = fetch("GET", "/gone").start(&proxy).unwrap();
    assert_eq!(
        (gone.status().unwrap(), gone.address().unwrap().as_str()),
        (404, "https://elsewhere.test/gone")
    );
    let refused = fetch("GET", "/secret").start(&proxy).unwrap();
    assert_eq!(refused.status().unwrap(), 404);
    assert_eq!(refused.headers().unwrap(), [("refused".to_owned(), "403".to_owned())]);
    assert_eq!(
        fetch("GET", "/down").start(&proxy).unwrap().status(),
        Err(Error::Unavailable("down".to_owned()))
    );
    let hosted = MemoryRepository { rights, name: "r".to_owned(), received: None };
    assert!(matches!(fetch("GET", "/a.jar").start(&hosted), Err(Error::Denied)));
}

#[test]
fn runs_hold_all_keys_and_their_records() {
    let host = host();
    let (_, r) = publish(&host);
    let add = |numbers: &mut dyn Iterator<Item = u32>| {
        for number in numbers {
            assert!(matches!(put(&r, &format!("a/{number:05}"), Absent, &[]), Outcome::Applied(_)));
        }
    };
    assert!(r.runs("a/").unwrap().is_empty());
    // There are more keys than one page of the host contains.
    add(&mut (0..12_000).map(|number| number * 2));
    let before = r.runs("a/").unwrap();
    assert_eq!(before.iter().map(packhouse_sdk::KeyRun::count).sum::<usize>(), 12_000);
    assert!(before.iter().all(|run| (1..=128).contains(&run.count())));
    let records =
        |run: &packhouse_sdk::KeyRun| r.run_records(run).map(|entry| entry.unwrap().key).collect::<Vec<_>>();
    let all: Vec<String> = before.iter().flat_map(records).collect();
    assert_eq!(all, r.keys("a/").map(Result::unwrap).collect::<Vec<_>>());
    // A new key changes one run and at most one neighbour. An old run whose keys surround the new
    // key also returns the record of the new key.
    add(&mut std::iter::once(7001));
    let places = |runs: &[packhouse_sdk::KeyRun]| {
        runs.iter().map(|run| (run.place(), run.count())).collect::<std::collections::BTreeSet<_>>()
    };
    let after = r.runs("a/").unwrap();
    assert!(places(&after).difference(&places(&before)).count() <= 2);
    let here = before.iter().find(|run| run.last() >= "07001").unwrap();
    assert!(records(here).contains(&"a/07001".to_owned()));
    // A removed record is left out, even if it was the last record of the run.
    let last = format!("a/{}", here.last());
    let mut change = r.begin().unwrap();
    change.remove(&last, packhouse_sdk::Expectation::Present);
    assert!(matches!(change.commit().unwrap(), Outcome::Applied(_)));
    let left = records(here);
    assert!(!left.contains(&last) && left.iter().all(|key| *key < last));
}
