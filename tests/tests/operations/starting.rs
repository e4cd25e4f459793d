//! The start of the server. It serves formats with cached compiled code at once, and each other
//! format as soon as its component is compiled. Until then it tells no client that something does
//! not exist.

use std::path::Path;
use std::process::Command;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::run;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::server::{OWNER, eventually, program};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, ServerBuilder, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
/// The file of the component that compiles slowly. The file's name does not reveal the format.
const SLOW: &str = "slow.wasm";

/// A folder of plugins, and a data folder with its own empty cache, because other tests share one.
struct ServerFolders {
    folder: TempDir,
}

impl ServerFolders {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["plugins", "data/cache"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn plugin(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join("plugins").join(name), bytes).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join("plugins").join(name)).unwrap();
    }

    fn server(&self) -> ServerBuilder {
        let plugins = self.folder.path().join("plugins");
        Server::with().data(&self.folder.path().join("data")).arg("--plugins").arg(plugins.to_str().unwrap())
    }

    /// Removes all compiled code from the cache.
    fn forget_compiled(&self) {
        let cache = self.folder.path().join("data/cache");
        std::fs::remove_dir_all(&cache).unwrap();
        std::fs::create_dir(&cache).unwrap();
    }
}

fn shipped(name: &str) -> Vec<u8> {
    std::fs::read(program().with_file_name("plugins").join(name)).unwrap()
}

/// Returns this component with an additional unused core module. The module's functions are so many
/// and so large that compiling them takes a minute or more.
fn slow(component: &[u8]) -> Vec<u8> {
    const FUNCTIONS: usize = 600;
    const BLOCKS: usize = 2_000;
    const VARIABLES: usize = 500;
    // Local variables of 64 bits.
    let mut body = [vec![1], leb(VARIABLES), vec![0x7e]].concat();
    for at in 0..BLOCKS {
        let [one, other, third] = [1, 3, 7].map(|step| leb(at * step % VARIABLES));
        // Leaves the block if `one` is 0; otherwise `other = (third + one) * other`.
        body.extend(
            [&[0x02, 0x40, 0x20][..], &one, &[0x50, 0x0d, 0x00, 0x20], &third, &[0x20], &one].concat(),
        );
        body.extend([&[0x7c, 0x20][..], &other, &[0x7e, 0x21], &other, &[0x0b]].concat());
    }
    body.push(0x0b);
    let function = [leb(body.len()), body].concat();
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    module.extend(section(1, vec![1, 0x60, 0, 0]));
    module.extend(section(3, [leb(FUNCTIONS), vec![0; FUNCTIONS]].concat()));
    module.extend(section(10, [leb(FUNCTIONS), function.repeat(FUNCTIONS)].concat()));
    [component.to_vec(), section(1, module)].concat()
}

fn section(number: u8, content: Vec<u8>) -> Vec<u8> {
    [vec![number], leb(content.len()), content].concat()
}

/// Encodes a number as WebAssembly does: seven bits in each byte, the lowest first.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[track_caller]
fn is_starting(answer: Response) {
    let observed = (answer.status, answer.header("retry-after"), answer.field("error"));
    assert_eq!(observed, (503, Some("5"), "server_starting".to_owned()), "{}", answer.text());
}

fn named<'a>(list: &'a Value, field: &str, name: &str) -> Option<&'a Value> {
    list["items"].as_array().unwrap().iter().find(|item| item[field] == name)
}

/// The server serves compiled formats while it compiles others. A kill in the middle changes
/// nothing.
#[test]
fn each_format_is_served_as_soon_as_its_own_component_is_compiled() {
    let place = ServerFolders::new();
    let (maven, docker) = (shipped("maven.wasm"), shipped("oci.wasm"));
    place.plugin("maven.wasm", &maven);
    place.plugin("oci.wasm", &docker);
    let server = place.server().start();
    let (libs, images) =
        (MavenRepository::create(&server, "libs"), ImageRepository::create(&server, "images", &json!({})));
    libs.put(FILE, "hello").expect(201);
    images.push("app", "1", &[b"layer"]).unwrap();
    drop(server);
    place.forget_compiled();
    place.remove("oci.wasm");
    place.plugin(SLOW, &slow(&docker));

    let mut server = place.server().begin();
    let [packages, api] = [server.packages(), server.api()].map(Client::new);
    let [libs, images] = [&libs.client, &images.client].map(|client| client.clone().at(server.packages()));
    let file = format!("/repositories/libs/{FILE}");
    let get = Request::new("GET", &file);
    let served = eventually("the other format is served", || {
        libs.try_send(get.clone()).ok().filter(|answer| answer.status == 200)
    });
    assert_eq!(served.text(), "hello");
    libs.put("/repositories/libs/org/example/a/2.0/a-2.0.jar", "more").expect(201);
    assert!(server.log().contains("compiling slow") && !server.log().contains("compiled slow"));
    // Some clients send their credential only after a challenge. So a client without a credential
    // gets the challenge.
    let challenge = packages.get(&file).expect(401);
    assert!(challenge.header("www-authenticate").unwrap().starts_with("Basic"), "{:?}", challenge.headers);

    awaited_formats_answer_503(&packages, &libs, &images);
    the_awaited_plugin_is_named(&server, &api, &packages);

    // A kill of the server also ends the compiling process. Components that were compiled before
    // the kill stay in the cache.
    let compiling = compiling_process(&server);
    assert_eq!(
        std::fs::read(format!("/proc/{compiling}/environ")).unwrap(),
        b"",
        "the environment may contain secrets"
    );
    server.kill9();
    eventually("the compiling process ends with the server", || (!is_running(compiling)).then_some(()));
    place.remove(SLOW);
    place.plugin("oci.wasm", &docker);
    let server = place.server().start();
    assert!(!server.log().contains("compiling maven"), "{}", server.log());
    let [libs, images] = [libs, images].map(|client| client.at(server.packages()));
    assert_eq!(libs.get(&file).expect(200).text(), "hello");
    let tags = images.get("/v2/repositories/images/app/tags/list").expect(200);
    assert_eq!(tags.json()["tags"], json!(["1"]));
    server.anonymous().get("/v2/").expect(401);
    server.anonymous().get("/nowhere").expect(401);
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(text.contains("packhouse_plugins_awaited 0"), "{text}");
    drop(server);

    // A new version of a known format compiles. Meanwhile errors have the format's shape, for
    // clients with and without a credential.
    place.plugin("oci.wasm", &slow(&docker));
    let server = place.server().begin();
    let [packages, images] = [server.anonymous(), images.at(server.packages())];
    let ask = |client: &Client, path: &str| client.try_send(Request::new("GET", path)).ok();
    eventually("it listens", || ask(&packages, "/livez"));
    for path in ["/v2/", "/v2/repositories/images/app/tags/list", "/repositories/images/app"] {
        let is_registry_error = |answer: &Response| answer.json()["errors"][0]["code"].is_string();
        let answer =
            eventually("the error has the format's shape", || ask(&images, path).filter(is_registry_error));
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.text());
    }
    assert_eq!(packages.get("/v2/").expect(503).json()["errors"].as_array().map(Vec::len), Some(1));

    // If the compiling process is killed, for example by the system for lack of memory, the server
    // compiles in its own process.
    let killed = Command::new("kill").arg("-KILL").arg(compiling_process(&server).to_string()).status();
    assert!(killed.unwrap().success());
    eventually("the server continues", || server.log().contains("compiling in this process").then_some(()));
    images.get("/v2/").expect(503);
}

/// The server reads the description of a compiled component from the cache, beside the code. If the
/// cached description is unusable, the server calls the component for it again.
#[test]
fn the_description_of_a_compiled_component_is_cached() {
    let place = ServerFolders::new();
    place.plugin("generic.wasm", &shipped("generic.wasm"));
    drop(place.server().start());
    let folder = place.folder.path().join("data/cache/descriptions/by-digest");
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let cached = std::fs::read_to_string(&file).unwrap();
    let version = serde_json::from_str::<Value>(&cached).unwrap()["version"].as_str().unwrap().to_owned();
    let other = cached.replace(&format!("\"{version}\""), "\"0.0.1\"");
    for (content, expected) in [(other.as_str(), "0.0.1"), ("{", version.as_str())] {
        std::fs::write(&file, content).unwrap();
        let server = place.server().start();
        let plugins = Api::sign_in(&server).call("GET", "/v1/plugins").expect(200).json();
        assert_eq!(named(&plugins, "source", "generic.wasm").unwrap()["version"], expected);
        assert!(!server.log().contains("compiling"), "{}", server.log());
    }
}

/// Clients that connect during a start with only compiled components wait. They get no 503.
#[test]
fn a_start_with_everything_compiled_refuses_no_client() {
    let place = ServerFolders::new();
    place.plugin("generic.wasm", &shipped("generic.wasm"));
    drop(place.server().start());
    let mut server = place.server().begin();
    for address in [server.packages(), server.api()] {
        let client = Client::new(address);
        let first = eventually("the server accepts a connection", || {
            assert!(server.running(), "{}", server.log());
            client.try_send(Request::new("GET", "/readyz")).ok()
        });
        assert_eq!(first.status, 200, "{}", first.text());
    }
    assert!(!server.log().contains("compiling"), "{}", server.log());
}

/// Returns the id of the process that compiles for this server.
fn compiling_process(server: &Server) -> u32 {
    let of_server = |process: &u32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        parent(*process) == Some(server.pid()) && String::from_utf8_lossy(&line).contains("compile-component")
    };
    eventually("a process compiles", || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(of_server)
    })
}

/// Returns the state and the parent of a process, from `/proc`; `None` if the process does not
/// exist.
fn state(process: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn parent(process: u32) -> Option<u32> {
    state(process).map(|(_, parent)| parent)
}

/// Returns `true` if the process exists and is not a zombie.
fn is_running(process: u32) -> bool {
    state(process).is_some_and(|(state, _)| state != "Z")
}

/// Checks that the server answers 503, never 401 or 404, for every path that may belong to a format
/// that is still compiling.
fn awaited_formats_answer_503(packages: &Client, libs: &Client, images: &Client) {
    for path in ["/v2/", "/v2/repositories/images/app/tags/list", "/nowhere", "/repositories/"] {
        is_starting(packages.get(path));
        is_starting(images.get(path));
    }
    // A repository of a compiling format and a missing repository get the same response.
    for path in ["/repositories/images/x", "/repositories/absent/x"] {
        is_starting(images.get(path));
        is_starting(libs.get(path));
        is_starting(packages.put(path, "x"));
        packages.get(path).expect(401);
    }
    is_starting(Client::new(packages.address()).basic(OWNER, "nobody's").get("/repositories/images/x"));
    packages.get("/").expect(200);
    packages.get("/livez").expect(200);
}

fn the_awaited_plugin_is_named(server: &Server, api: &Client, packages: &Client) {
    let ready = api.get("/readyz").expect(503);
    assert_eq!(
        (ready.field("status").as_str(), ready.field("error").as_str()),
        ("unavailable", "server_starting")
    );
    assert_eq!(
        ready.json()["degraded"][0]["detail"],
        "The plugin slow is being compiled.",
        "{}",
        ready.text()
    );
    assert_eq!(packages.get("/readyz").expect(503).field("status"), "unavailable");
    let text = api.get("/metrics").expect(200).text();
    assert!(text.contains("packhouse_plugins_awaited 1") && text.contains("packhouse_ready 0"), "{text}");

    let api = Api::sign_in(server);
    let formats = api.call("GET", "/v1/formats").expect(200).json();
    assert_eq!(named(&formats, "format", "maven").unwrap()["loaded"], true);
    let awaited = named(&formats, "format", "docker").unwrap();
    assert_eq!(awaited["loaded"], false);
    assert!(awaited["problem"].as_str().unwrap().contains("being compiled"), "{awaited}");
    let plugins = api.call("GET", "/v1/plugins").expect(200).json();
    let awaited = named(&plugins, "source", SLOW).unwrap();
    assert_eq!((&awaited["state"], &awaited["digest"]), (&json!("compiling"), &Value::Null));
    assert_eq!(named(&plugins, "format", "maven").unwrap()["state"], "active");

    let repository =
        |format: &str| json!({"name": format!("more-{format}"), "format": format, "kind": "hosted"});
    api.post("/v1/repositories", &repository("maven")).expect(201);
    is_starting(api.post("/v1/repositories", &repository("docker")));
    is_starting(api.patch("/v1/formats/docker", &json!({"enabled": false})));
    is_starting(api.call("POST", "/v1/plugins/maven/rollback"));
    api.patch("/v1/formats/maven", &json!({"enabled": true})).expect(200);
}

/// TLS handshakes do not wait for the compiler.
#[test]
fn handshakes_do_not_wait_for_a_compiler() {
    let authority = match Authority::new() {
        Ok(authority) => authority,
        Err(reason) => return skip("handshakes while a server starts", &reason),
    };
    let place = ServerFolders::new();
    place.plugin("maven.wasm", &shipped("maven.wasm"));
    place.plugin(SLOW, &slow(&shipped("generic.wasm")));
    let pair = authority.issue("starting", &["DNS:localhost", "IP:127.0.0.1"]);
    let [cert, key] = pair.each_ref().map(|path| path.to_str().unwrap());
    let server = place.server().env("PACKHOUSE_TLS_CERT", cert).env("PACKHOUSE_TLS_KEY", key).begin();
    let get = |address: std::net::SocketAddr, path: &str| {
        status(&authority.ca(), &format!("https://{address}{path}"))
    };
    eventually("the handshake completes", || (get(server.api(), "/livez") == "200").then_some(()));
    assert_eq!(get(server.api(), "/readyz"), "503");
    eventually("the other format is compiled", || server.log().contains("compiled maven").then_some(()));
    assert_eq!(get(server.packages(), "/repositories/libs/a"), "401");
    assert_eq!(get(server.packages(), "/v2/"), "503");
    assert_eq!(get(server.api(), "/readyz"), "503", "{}", server.log());
}

fn status(ca: &Path, url: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "20", "--output", "/dev/null", "--write-out", "%{http_code}"]);
    run(curl.arg("--cacert").arg(ca).arg(url)).text
}

/// Start with an activated component. Requests for its format wait until the component is compiled.
/// No other component answers in the meantime.
#[test]
fn an_activated_component_is_waited_for_and_no_other_serves_meanwhile() {
    let place = ServerFolders::new();
    let maven = shipped("maven.wasm");
    place.plugin("maven.wasm", &maven);
    let server = place.server().start();
    let libs = MavenRepository::create(&server, "libs");
    libs.put(FILE, "hello").expect(201);
    let api = Api::sign_in(&server);
    let active =
        named(&api.call("GET", "/v1/plugins").expect(200).json(), "format", "maven").unwrap()["digest"]
            .clone();
    // The copy has an additional section, so it is another component with the same behaviour.
    let chosen = [maven.as_slice(), &[0, 2, 1, b'x']].concat();
    let install = Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm");
    let digest = api.request(install.body(chosen)).expect(201).field("digest");
    let body = json!({"digest": digest, "expected_active": active, "accept_changes": false});
    api.post("/v1/plugins/maven/activate", &body).expect(200);
    drop(server);
    place.forget_compiled();

    let server = place.server().begin();
    let libs = libs.client.at(server.packages());
    let get = Request::new("GET", &format!("/repositories/libs/{FILE}"));
    let served = eventually("the chosen component serves", || {
        let answer = libs.try_send(get.clone()).ok()?;
        assert!([200, 503].contains(&answer.status), "{} {}", answer.status, answer.text());
        (answer.status == 200).then_some(answer)
    });
    assert_eq!(served.text(), "hello");
    let plugins = Api::sign_in(&server).call("GET", "/v1/plugins").expect(200).json();
    assert_eq!(named(&plugins, "digest", &digest).unwrap()["state"], "active");
}
