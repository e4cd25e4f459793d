//! A rolling update under load. Servers of an older program version and of this version share one
//! PostgreSQL, and the test replaces them one after the other. It runs only on demand (`just
//! rolling PROGRAM`): `PACKHOUSE_TEST_OLDER` names the older program, which has its plugins beside
//! it.

use packhouse_tests::cli::packhouse_with;
use packhouse_tests::clients::run;
use packhouse_tests::database::Postgres;
use packhouse_tests::race::SetOnDrop;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, Client, MavenRepository, Server, skip};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};

/// Name of the environment variable with the path of the older program.
const OLDER: &str = "PACKHOUSE_TEST_OLDER";
const PUBLISHERS: usize = 4;
const GONE: &str = "org/example/gone/1.0/gone-1.0.jar";

struct World {
    database: Postgres,
    data: tempfile::TempDir,
    older: String,
}

impl World {
    fn server(&self, older: bool) -> Server {
        let server = Server::with().data(self.data.path()).arg("--database-url").arg(&self.database.url());
        if !older {
            return server.start();
        }
        let words = format!("shift; exec '{}' \"$@\"", self.older);
        server.wrapped_in(&["sh", "-c", &words, "sh"]).start()
    }
}

/// The load while servers start and stop. Each publisher sends a file to one running server and
/// then reads it from another.
struct Load {
    serving: RwLock<Vec<SocketAddr>>,
    acknowledged: Mutex<Vec<String>>,
    ended: AtomicBool,
}

impl Load {
    fn publish(&self, publisher: usize, secret: &str) {
        for number in 0.. {
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            // The lock is held during the publish, so that the test does not stop a server that the
            // publish uses.
            let serving = self.serving.read().unwrap();
            let at =
                |which: usize| Client::new(serving[(number + which) % serving.len()]).basic(OWNER, secret);
            let path =
                format!("/repositories/releases/org/example/p{publisher}/{number}/p{publisher}-{number}.jar");
            at(0).put(&path, path.as_bytes()).expect(201);
            assert_eq!(at(1).get(&path).expect(200).text(), path, "another server has it immediately");
            self.acknowledged.lock().unwrap().push(path);
        }
    }

    /// Waits for this many more acknowledgements.
    fn goes_on(&self) {
        let before = self.acknowledged.lock().unwrap().len();
        eventually("publishes continue", || {
            (self.acknowledged.lock().unwrap().len() > before + 40).then_some(())
        });
    }

    fn joins(&self, server: &Server) {
        self.serving.write().unwrap().push(server.packages());
    }

    fn leaves(&self, mut server: Server) {
        self.serving.write().unwrap().retain(|address| *address != server.packages());
        server.terminate();
        server.wait();
    }
}

/// Asserts that each server answers each of these paths in the same way.
fn all_serve(servers: &[&Server], secret: &str, paths: &[String]) {
    for server in servers {
        let client = server.anonymous().basic(OWNER, secret);
        for path in paths {
            assert_eq!(client.get(path).expect(200).text(), *path);
        }
    }
}

#[test]
fn an_older_program_is_replaced_server_by_server() {
    let Some(older) = std::env::var_os(OLDER) else {
        return skip("a rolling restart with an older program", &format!("{OLDER} names none"));
    };
    let older = Path::new(&older).canonicalize().unwrap().display().to_string();
    let world = World { database: Postgres::start().unwrap(), data: tempfile::tempdir().unwrap(), older };
    let [first, second] = [world.server(true), world.server(true)];
    let maven = MavenRepository::create(&first, "releases");
    let secret = maven.token.secret.clone();
    // Large enough to be a blob outside the database.
    let content = vec![b'x'; 100_000];
    maven.put(GONE, content.clone()).expect(201);
    let load = Load {
        serving: RwLock::new(vec![first.packages(), second.packages()]),
        acknowledged: Mutex::default(),
        ended: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let publishers: Vec<_> = (0..PUBLISHERS)
            .map(|at| {
                scope.spawn({
                    let (load, secret) = (&load, &secret);
                    move || load.publish(at, secret)
                })
            })
            .collect();
        let ended = SetOnDrop(&load.ended);
        load.goes_on();
        load.leaves(second);
        let new = world.server(false);
        load.joins(&new);
        load.goes_on();

        // This version deletes a package version, and its undo restores it.
        let api = Api::sign_in(&new);
        let version = format!("/v1/repositories/{}/packages/org.example%3Agone/versions/1.0", maven.id);
        api.call("DELETE", &version).expect(204);
        for server in [&first, &new] {
            server.anonymous().basic(OWNER, &secret).get(&maven.path(GONE)).expect(404);
        }
        // The older program's commands refuse a database with a newer schema.
        let mut collection = Command::new(&world.older);
        collection
            .args(["gc", "--data"])
            .arg(world.data.path())
            .args(["--database-url", &world.database.url()]);
        run(&mut collection).refused("newer version");
        let trash = format!("/v1/repositories/{}/trash", maven.id);
        let entry = api.call("GET", &trash).expect(200).json()["items"][0]["id"].as_str().unwrap().to_owned();
        api.call("POST", &format!("{trash}/{entry}/restore")).expect(200);
        for server in [&first, &new] {
            let client = server.anonymous().basic(OWNER, &secret);
            assert_eq!(client.get(&maven.path(GONE)).expect(200).body, content);
        }
        // One server revokes a token, and the second server refuses it at once.
        let token = api.create_token(&[&maven.id], &["read"], None);
        let there = first.anonymous().basic(OWNER, &token.secret);
        there.get("/repositories/releases/none").expect(404);
        api.call("DELETE", &format!("/v1/tokens/{}", token.id)).expect(204);
        there.get("/repositories/releases/none").expect(401);

        load.goes_on();
        load.leaves(first);
        let last = world.server(false);
        load.joins(&last);
        load.goes_on();
        drop(ended);
        for publisher in publishers {
            publisher.join().unwrap();
        }
        let acknowledged = load.acknowledged.lock().unwrap();
        all_serve(&[&new, &last], &secret, &acknowledged);
        println!("{} publishes, each read back from another server at once", acknowledged.len());
        let environment = [("PACKHOUSE_DATABASE_URL", world.database.url())];
        packhouse_with(world.data.path(), &["scrub"], &environment).success();
    });
}
