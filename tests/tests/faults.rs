//! A disk that fails in the middle of a publish: never an acknowledgement for what is not there, and the server recovers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_tests::faults::{Call, Fault, Faults};
use packhouse_tests::{MavenRepository, Server, payload, skip};

/// More calls of a kind than any publish makes: a loop that reaches this has not found the end.
const MOST: u32 = 200;

/// Fails the first call of this kind, then the second, until a publish meets no fault any more.
fn every_call(
    faults: &Faults,
    server: &mut Server,
    repository: &MavenRepository,
    call: Call,
    fault: Fault,
    length: usize,
) {
    for when in 1..MOST {
        let version = format!("{call:?}.{fault:?}.{length}.{when}").to_lowercase();
        let file = format!("org/example/faults/{version}/faults-{version}.jar");
        let body = payload::bytes(u64::from(when), length);

        faults.arm(call, fault, when);
        let answer =
            repository.client.put_from(&repository.path(&file), &mut body.as_slice(), body.len() as u64);
        let failed = faults.disarm();
        let status = answer.as_ref().map(|answer| answer.status).ok();
        if !failed {
            assert_eq!(status, Some(201), "{version}: without any fault");
        }
        // The server is up still, or an operator's restart brings it back.
        let after = format!("{file}.after.jar");
        if !server.running()
            || repository
                .client
                .try_send(packhouse_tests::Request::new("PUT", &repository.path(&after)).body("x"))
                .is_err()
        {
            server.restart();
        }
        let acknowledged = status.is_some_and(|status| (200..300).contains(&status));
        check(repository, &file, &body, acknowledged, &version);
        if acknowledged {
            // What the page cache holds is no proof: a new process reads it from the disk's files.
            server.restart();
            check(repository, &file, &body, acknowledged, &version);
        } else {
            repository.put(&file, body.clone()).expect(201);
        }
        if !failed {
            return;
        }
    }
    panic!("a publish of {length} bytes made over {MOST} calls of {call:?}");
}

fn check(repository: &MavenRepository, file: &str, body: &[u8], acknowledged: bool, version: &str) {
    let answer = repository.get(file);
    match answer.status {
        200 => assert!(answer.body == body, "{version}: other bytes"),
        404 => assert!(!acknowledged, "{version}: acknowledged and not there"),
        status => panic!("{version}: {status}"),
    }
    if !acknowledged {
        assert_ne!(answer.status, 200, "{version}: refused and there all the same");
    }
}

fn fail(call: Call) {
    let faults = match Faults::new() {
        Ok(faults) => faults,
        Err(reason) => return skip("disk faults", &reason),
    };
    let mut server = faults.server().start();
    let repository = MavenRepository::create(&server, "faults");
    for length in [1_000, 1 << 20] {
        for fault in [Fault::Eio, Fault::Enospc] {
            every_call(&faults, &mut server, &repository, call, fault, length);
        }
    }
}

#[test]
fn every_write_fails_once() {
    fail(Call::Write);
}

#[test]
fn every_fsync_fails_once() {
    fail(Call::Sync);
}

#[test]
fn every_rename_fails_once() {
    fail(Call::Rename);
}
