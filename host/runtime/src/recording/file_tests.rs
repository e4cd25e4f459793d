//! Parsing of recordings, valid and invalid.

use proptest::prelude::*;
use serde_json::json;

use super::file::*;

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Recording::parse(&bytes);
    }

    #[test]
    fn any_members_are_refused(members in prop::collection::hash_map("[a-z_]{1,12}", "[ -~]{0,9}", 0..9)) {
        let mut file = json!({"packhouse_recording": 1, "calls": []});
        for (name, text) in members {
            file[name] = json!(text);
        }
        prop_assert!(Recording::parse(file.to_string().as_bytes()).is_err());
    }
}

#[test]
fn unlimited_nesting_is_refused() {
    let deep = format!("{{\"packhouse_recording\": 1, \"calls\": {}", "[".repeat(1_000_000));
    assert!(Recording::parse(deep.as_bytes()).is_err());
}

#[test]
fn a_failure_is_a_missing_answer_or_a_status_of_500() {
    let outcome = |answer| RecordedOutcome { answer: Some(answer), failed: None };
    for (answer, failed, word) in [
        (json!({"ok": {"status": 200}}), false, "200"),
        (json!({"refused": {"status": 404}}), false, "404"),
        (json!({"refused": {"status": 500}}), true, "500"),
        (json!({"ok": null}), false, "ok"),
    ] {
        let outcome = outcome(answer);
        assert_eq!((outcome.is_failure(), outcome.to_string().as_str()), (failed, word));
    }
    let failed = RecordedFailure { kind: "trap".to_owned(), message: "it fell".to_owned() };
    let outcome = RecordedOutcome { answer: None, failed: Some(failed) };
    assert_eq!((outcome.is_failure(), outcome.to_string().as_str()), (true, "trap"));
}

#[test]
fn only_a_sha_256_names_a_component() {
    let file = |component: &str| {
        let call = json!({"function": "route", "arguments": [], "request": 0, "target": null, "others": [],
            "imports": [], "outcome": {"answer": {"ok": null}, "failed": null}});
        let request = RecordedRequest::default();
        let limits = json!({"memory_bytes": 1, "call_timeout_ms": 1, "hostcall_bytes": 1, "handles": 1});
        let wasi = RecordedWasi::default();
        let file = json!({"packhouse_recording": 1, "format": "f", "component": component, "version": "1",
            "recorded_at": 1, "request": request, "limits": limits, "wasi": wasi, "calls": [call]});
        Recording::parse(file.to_string().as_bytes())
    };
    let hex = "0123456789abcdef".repeat(4);
    assert_eq!(file(&format!("sha256:{hex}")).unwrap().function(), "route");
    for wrong in [
        hex.clone(),
        format!("sha512:{hex}"),
        format!("sha256:{hex}0"),
        format!("sha256:{}", hex.to_uppercase()),
    ] {
        assert!(file(&wrong).unwrap_err().contains("not a SHA-256"), "{wrong}");
    }
}
