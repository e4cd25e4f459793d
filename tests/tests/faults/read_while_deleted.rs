//! A read during a deletion returns the complete file or 404.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use packhouse_tests::race::SetOnDrop;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::{Request, Server};
use serde_json::json;

#[test]
fn a_read_during_a_deletion_is_complete_or_404() {
    const READERS: usize = 6;
    const FILES: usize = 150;
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let bytes = |file: usize| format!("{file} ").repeat(20_000);
    let (last, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let file = last.load(Ordering::Relaxed);
                    let answer = repository.get(&format!("a/{file}"));
                    match answer.status {
                        200 => assert!(answer.text() == bytes(file), "{file} is not whole"),
                        404 => {}
                        _ => panic!("{} {}\n{}", answer.status, answer.text(), server.log()),
                    }
                }
            });
        }
        // Dropping this value ends the readers, even if the test fails.
        let ended = SetOnDrop(&done);
        for file in 0..FILES {
            let path = format!("a/{file}");
            repository.put(&path, bytes(file)).expect(201);
            last.store(file, Ordering::Relaxed);
            repository.client.send(Request::new("DELETE", &repository.path(&path))).expect(204);
        }
        drop(ended);
    });
}
