//! A disk that fails in the middle of a publish: the server acknowledges only stored files, and
//! recovers.

use packhouse_tests::faults::{Call, Fault, Faults};
use packhouse_tests::{MavenRepository, Server, payload, skip};

/// Number that exceeds the calls of one kind in any publish. A loop that reaches it has a bug.
const MOST: u32 = 200;

/// A failing disk, a server with its data on this disk, and a repository of the server.
struct FaultyServer {
    faults: Faults,
    server: Server,
    repository: MavenRepository,
}

impl FaultyServer {
    fn put(&self, file: &str, body: &[u8]) -> u16 {
        let path = self.repository.path(file);
        let answer = self.repository.client.put_from(&path, &mut &body[..], body.len() as u64);
        answer.unwrap_or_else(|error| panic!("{file}: {error}\n{}", self.server.log())).status
    }

    /// Publishes again and again; the first call of this kind fails in the first publish, the
    /// second call in the second publish, and so on. Ends when no call failed; returns the number
    /// of failed calls.
    fn every_call(&mut self, call: Call, fault: Fault, length: usize) -> u32 {
        for when in 1..MOST {
            let version = format!("{call:?}.{fault:?}.{length}.{when}").to_lowercase();
            let file = format!("org/example/faults/{version}/faults-{version}.jar");
            let body = payload::bytes(u64::from(when), length);

            self.faults.arm(call, fault, when);
            let status = self.put(&file, &body);
            let failed = self.faults.disarm();
            // The database makes some calls for itself, such as moving old pages. Such a call may
            // fail without an effect on the answer.
            let expected: &[u16] = if failed { &[201, 503] } else { &[201] };
            assert!(expected.contains(&status), "{version}: {status}\n{}", self.server.log());

            self.check(&file, &body, status == 201);
            if status == 201 {
                // Restart the server, so that it reads the file from the disk and not from its
                // memory.
                self.server.restart();
                self.check(&file, &body, true);
            } else {
                // Once the disk works again, the server accepts the publish without a restart.
                let again = self.put(&file, &body);
                assert_eq!(again, 201, "{version}: after the disk recovered\n{}", self.server.log());
                self.check(&file, &body, true);
            }
            if !failed {
                return when - 1;
            }
        }
        panic!("a publish of {length} bytes made over {MOST} calls of {call:?}");
    }

    fn check(&self, file: &str, body: &[u8], acknowledged: bool) {
        let answer = self.repository.get(file);
        let expected = if acknowledged { 200 } else { 404 };
        assert_eq!(answer.status, expected, "{file}: {}\n{}", answer.text(), self.server.log());
        assert!(!acknowledged || answer.body == body, "{file}: other bytes");
    }
}

fn fail(call: Call) {
    let faults = match Faults::new() {
        Ok(faults) => faults,
        Err(reason) => return skip("disk faults", &reason),
    };
    let server = faults.server().start();
    let repository = MavenRepository::create(&server, "faults");
    let mut set = FaultyServer { faults, server, repository };
    let mut failed = 0;
    for length in [1_000, 1 << 20] {
        for fault in [Fault::Eio, Fault::Enospc] {
            failed += set.every_call(call, fault, length);
        }
    }
    assert!(failed > 0, "no {call:?} ever failed: the faults do not reach the server");
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
