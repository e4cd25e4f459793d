//! Clients that exchange an ID token for a token themselves, and clients that send an ID token as a
//! password.

use super::{World, wheel};
use packhouse_tests::authority::Authority;
use packhouse_tests::clients::{Maven, goal, has, run};
use packhouse_tests::npm::{Js, Tool};
use packhouse_tests::python::Home;
use packhouse_tests::{Request, Server, skip};
use serde_json::{Value, json};

const WORKFLOW: &str =
    "octo-org/octo-repo release.yml commit 0123456789abcdef0123456789abcdef01234567 run 1658821493";

fn wheel_of(home: &Home, project: &str) -> String {
    let name = format!("dist/{}-1.0-py3-none-any.whl", project.replace('-', "_"));
    home.write(&name, wheel::wheel(project, "1.0", "")).to_string_lossy().into_owned()
}

fn published_by(world: &World, repository: &str, package: &str, version: &str) -> String {
    let path = format!("/v1/repositories/{repository}/packages/{package}/versions/{version}");
    world.api.call("GET", &path).expect(200).field("published_by")
}

#[test]
fn uv_publishes_from_a_workflow_without_a_secret() {
    let home = match Home::with("uv") {
        Ok(home) => home,
        Err(reason) => return skip("uv", &reason),
    };
    let authority = match Authority::new() {
        Ok(authority) => authority,
        Err(reason) => return skip("openssl", &reason),
    };
    // uv requests the audience over https, even if it publishes to an http URL.
    let files = authority.issue("packages", &["IP:127.0.0.1"]);
    let [cert, key] = files.map(|file| file.to_string_lossy().into_owned());
    let server = Server::with().env("PACKHOUSE_TLS_PACKAGES_CERT", &cert);
    let world = World::of(server.env("PACKHOUSE_TLS_PACKAGES_KEY", &key));
    let repository = world.repository("python", "wheels");
    world.issuer.job(world.github());
    let wheel = wheel_of(&home, "hello-trust");
    let url = format!("https://{}/repositories/wheels", world.server.packages());
    let mut variables = world.issuer.variables().to_vec();
    variables.push(("SSL_CERT_FILE", authority.ca().to_string_lossy().into_owned()));
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let publish = |more: &[&str], wheel: &str| {
        let mut arguments = vec!["publish", "--publish-url", &url];
        arguments.extend(more);
        arguments.push(wheel);
        home.run("", "uv", &arguments, &variables)
    };
    // The workflow is not trusted yet, and uv prints the server's sentence.
    publish(&["--trusted-publishing", "always"], &wheel)
        .refused("no trusted publisher here names its issuer");
    // A publisher can be trusted for packages that do not exist yet.
    world.trust(&repository, &json!({"packages": ["hello-*"]}));
    publish(&[], &wheel).success();
    assert_eq!(published_by(&world, &repository, "hello-trust", "1.0"), WORKFLOW);
    // After the publish, uv revokes its token.
    let given_back = world.events("revoke_token");
    assert_eq!((given_back.len(), &given_back[0]["actor"]), (1, &json!(WORKFLOW)));

    publish(&[], &wheel_of(&home, "other-name")).refused("403");
    let events = world.events("exchange_id_token");
    assert_eq!(events[0]["actor"], WORKFLOW);
    assert_eq!(events[0]["detail"]["claims"]["repository"], "octo-org/octo-repo");
    assert_eq!(events[0]["detail"]["claims"]["run_id"], "1658821493");
    let published = world.events("publish");
    assert_eq!(published[0]["actor"], WORKFLOW);
    assert!(published[0]["credential"].as_str().unwrap().starts_with("token:"));
    let log = world.server.log();
    for id_token in world.issuer.given() {
        let signature = id_token.rsplit('.').next().unwrap();
        assert!(!log.contains(&id_token[..60]) && !log.contains(signature), "an ID token is in the log");
    }
}

#[test]
fn npm_publishes_from_a_workflow_without_a_secret() {
    let world = World::start();
    let repository = world.repository("npm", "js");
    let url = format!("{}/repositories/js", world.server.base_url());
    let npm = match Js::new(Tool::Npm11, &url, "") {
        Ok(npm) => npm,
        Err(reason) => return skip("npm11", &reason),
    };
    npm.write(".npmrc", &format!("registry={url}/\nfund=false\nupdate-notifier=false\n"));
    world.trust(&repository, &json!({"packages": ["@acme/*"]}));
    world.issuer.job(world.github());
    let publish = |name: &str| {
        npm.package("lib", &json!({"name": name, "version": "1.0.0", "license": "MIT"}));
        let set: Vec<String> =
            world.issuer.variables().iter().map(|(name, value)| format!("export {name}='{value}'")).collect();
        npm.shell("lib", &format!("{}\nnpm publish --loglevel verbose", set.join("\n")))
    };
    let output = publish("@acme/lib").success();
    assert!(output.text.contains("Successfully retrieved and set token"), "{}", output.text);
    assert_eq!(published_by(&world, &repository, "%40acme%2Flib", "1.0.0"), WORKFLOW);
    // npm continues without a token, and prints the reason.
    let output = publish("@other/lib").refused("ENEEDAUTH");
    assert!(output.text.contains("has access to the package @other/lib"), "{}", output.text);

    // A token for one package does not work for another.
    let mut claims = world.github();
    claims["aud"] = json!("npm:127.0.0.1");
    let exchange = |package: &str, id_token: &str| {
        let path = format!("/-/npm/v1/oidc/token/exchange/package/{package}");
        let request = Request::new("POST", &path).header("Authorization", &format!("Bearer {id_token}"));
        world.server.anonymous().send(request)
    };
    let token = exchange("@acme%2Ftool", &world.issuer.token(&claims)).expect(200).field("token");
    let client = world.server.anonymous().with("Authorization", &format!("Bearer {token}"));
    client.get("/repositories/js/@acme%2Flib").expect(403);
    client.get("/repositories/js/@acme%2Ftool").expect(404);
    assert!(exchange("@acme%2Ftool", "nonsense").expect(401).text().contains("three parts"));
}

#[test]
fn cargos_exchange_gives_a_token() {
    let world = World::start();
    let repository = world.repository("cargo", "crates");
    world.trust(&repository, &json!({}));
    for method in ["PUT", "POST"] {
        let request = Request::new(method, "/api/v1/trusted_publishing/tokens")
            .header("Content-Type", "application/json");
        let body = json!({"jwt": world.issuer.token(&world.github())}).to_string();
        let token = world.server.anonymous().send(request.body(body)).expect(200).field("token");
        let client = world.server.anonymous().with("Authorization", &token);
        client.get("/repositories/crates/config.json").expect(200);
    }
    let request = Request::new("PUT", "/api/v1/trusted_publishing/tokens").body(r#"{"jwt": "nonsense"}"#);
    let refused = world.server.anonymous().send(request).expect(400).json();
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("not an ID token"), "{refused}");
}

/// Passes the token to cargo in the environment, like crates.io's action.
#[test]
fn cargo_publishes_with_the_exchanged_token() {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    if !has("cargo") && std::env::var_os("CARGO").is_none() {
        return skip("cargo", "it is not on the path");
    }
    let world = World::start();
    let repository = world.repository("cargo", "crates");
    world.trust(&repository, &json!({"packages": ["acme-*"]}));
    let request =
        Request::new("PUT", "/api/v1/trusted_publishing/tokens").header("Content-Type", "application/json");
    let body = json!({"jwt": world.issuer.token(&world.github())}).to_string();
    let token = world.server.anonymous().send(request.body(body)).expect(200).field("token");
    let home = tempfile::TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let publish = |name: &str| {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2021\"\ndescription = \"x\"\nlicense = \"MIT\"\n"
        );
        write(&format!("{name}/Cargo.toml"), &manifest);
        write(&format!("{name}/src/lib.rs"), "pub fn answer() -> u32 { 42 }\n");
        let mut command = std::process::Command::new(&program);
        command
            .args(["publish", "--registry", "own", "--allow-dirty", "--no-verify"])
            .current_dir(home.path().join(name))
            .env("CARGO_HOME", home.path().join(".cargo"))
            .env(
                "CARGO_REGISTRIES_OWN_INDEX",
                format!("sparse+{}/repositories/crates/", world.server.base_url()),
            )
            .env("CARGO_REGISTRIES_OWN_CREDENTIAL_PROVIDER", "cargo:token")
            .env("CARGO_REGISTRIES_OWN_TOKEN", &token);
        run(&mut command)
    };
    publish("acme-tool").success();
    assert_eq!(published_by(&world, &repository, "acme-tool", "1.0.0"), WORKFLOW);
    publish("other").refused("403");
}

#[test]
fn twine_uploads_with_a_minted_token_and_reads_nothing_else() {
    let home = match Home::with("twine") {
        Ok(home) => home,
        Err(reason) => return skip("twine", &reason),
    };
    let world = World::start();
    let repository = world.repository("python", "wheels");
    world.repository("python", "others");
    let publisher = world.trust(&repository, &json!({"packages": ["Hello_*"]}));
    let answer = world.mint(&world.issuer.token(&world.github())).expect(200).json();
    assert_eq!(answer["success"], true);
    let left = answer["expires"].as_u64().unwrap() - super::now();
    assert!((880..=900).contains(&left), "{answer}");
    let token = answer["token"].as_str().unwrap();
    let twine = |project: &str| {
        let url = format!("{}/repositories/wheels", world.server.base_url());
        let (wheel, show) = (wheel_of(&home, project), ["-u", "__token__", "-p", token]);
        let mut arguments =
            vec!["upload", "--non-interactive", "--disable-progress-bar", "--repository-url", &url];
        arguments.extend(show);
        arguments.push(&wheel);
        home.run("", "twine", &arguments, &[])
    };
    twine("hello-twine").success();
    twine("other").refused("403");
    let client = world.client_as("__token__", token);
    client.get("/repositories/wheels/simple/hello-twine/").expect(200);
    client.get("/repositories/wheels/simple/other/").expect(403);
    client.get("/repositories/others/simple/hello-twine/").expect(403);
    // A deleted publisher's token no longer works.
    world.api.call("DELETE", &format!("/v1/trusted-publishers/{publisher}")).expect(204);
    client.get("/repositories/wheels/simple/hello-twine/").expect(401);
    twine("hello-again").refused("401");
}

#[test]
fn an_id_token_is_a_password_until_it_expires() {
    let world = World::start();
    let (maven, docker) = (world.repository("maven", "jars"), world.repository("docker", "images"));
    world.trust(&maven, &json!({"packages": ["com.acme:*"]}));
    world.trust(&docker, &json!({"packages": ["app"]}));
    let id_token = world.issuer.token(&world.github());
    let client = world.client_as("ci", &id_token);
    let jar = |group: &str| format!("/repositories/jars/{group}/hello/1.0/hello-1.0.jar");
    for _ in 0..2 {
        client.get(&jar("com/acme")).expect(404);
    }
    client.put(&jar("com/acme"), b"a jar".to_vec()).expect(201);
    client.put("/repositories/jars/com/acme/hello/maven-metadata.xml", b"<metadata/>".to_vec());
    client.put(&jar("com/other"), b"a jar".to_vec()).expect(403);
    assert_eq!(published_by(&world, &maven, "com.acme%3Ahello", "1.0"), WORKFLOW);

    // Docker sends the ID token to the token service, which returns a bearer token.
    let service = "/v2/token?service=x&scope=repository:repositories/images/app:pull,push";
    let bearer = client.get(service).expect(200).field("token");
    let bearer = world.server.anonymous().with("Authorization", &format!("Bearer {bearer}"));
    let layer = b"a layer";
    let digest = packhouse_tests::images::digest(layer);
    let upload = |client: &packhouse_tests::Client, image: &str| {
        let target = format!("/v2/repositories/images/{image}/blobs/uploads/?digest={digest}");
        client.send(Request::new("POST", &target).body(layer))
    };
    upload(&bearer, "app").expect(201);
    upload(&client, "other").expect(403);
    let used = world.events("use_id_token");
    assert_eq!(used.len(), 1, "it is recorded once: {used:?}");
    assert_eq!(used[0]["detail"]["claims"]["sub"], "repo:octo-org/octo-repo:environment:release");
    // An exchange accepts an ID token only once. The use as a password was not an exchange, so one
    // exchange still succeeds.
    world.mint(&id_token).expect(422);
    world.exchange(&id_token, "jars", &[]).expect(200);
    client.get(&jar("com/acme")).expect(200);
}

#[test]
fn maven_deploys_with_an_id_token() {
    let world = World::start();
    let repository = world.repository("maven", "jars");
    world.trust(&repository, &json!({
        "provider": "gitlab", "packages": ["com.acme:hello"],
        "claims": {"namespace": "my-group", "project": "my-project", "workflow": ".gitlab-ci.yml", "environment": "production"},
    }));
    let id_token = world.issuer.token(&world.gitlab());
    let maven = match Maven::new(&id_token) {
        Ok(maven) => maven,
        Err(reason) => return skip("mvn", &reason),
    };
    let jar = maven.write("hello.jar", "a jar");
    let url = format!("{}/repositories/jars", world.server.base_url());
    let deploy = |artifact: &str| {
        let arguments = [
            goal("deploy", "deploy-file"),
            format!("-Dfile={}", jar.display()),
            format!("-Durl={url}"),
            "-DrepositoryId=packhouse".to_owned(),
            "-DgroupId=com.acme".to_owned(),
            format!("-DartifactId={artifact}"),
            "-Dversion=1.0".to_owned(),
            "-Dpackaging=jar".to_owned(),
        ];
        maven.run("", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    deploy("hello").success();
    deploy("other").refused("403");
    let by = published_by(&world, &repository, "com.acme%3Ahello", "1.0");
    assert_eq!(
        by,
        "my-group/my-project .gitlab-ci.yml commit 714a629c0b401fdce83e847fc9589983fc6f46bc run 574"
    );
}

#[test]
fn any_program_can_exchange_tokens_by_oauth() {
    let world = World::start();
    let repository = world.repository("generic", "files");
    world.repository("generic", "others");
    let claims: Value = json!({"provider": "oidc", "packages": ["*"], "scope": ["write"], "claims": {"sub": "system:serviceaccount:ci:builder"}});
    world.trust(&repository, &claims);
    let mut claims = json!({"iss": world.issuer.url, "sub": "system:serviceaccount:ci:builder", "aud": [world.audience()],
        "iat": super::now(), "exp": super::now() + 60});
    let audience = world.audience();
    let answer =
        world.exchange(&world.issuer.token(&claims), "files", &[("audience", &audience)]).expect(200);
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    let answer = answer.json();
    assert_eq!(answer["issued_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("Bearer"), &json!(900)));
    let client = world
        .server
        .anonymous()
        .with("Authorization", &format!("Bearer {}", answer["access_token"].as_str().unwrap()));
    client.put("/repositories/files/a/b.txt", b"hello".to_vec()).expect(201);
    client.get("/repositories/files/a/b.txt").expect(403);
    client.put("/repositories/others/a/b.txt", b"hello".to_vec()).expect(403);
    // These ID tokens have no `jti` claim. The server still accepts the same token only once.
    claims["iat"] = json!(super::now() - 1);
    let id_token = world.issuer.token_signed(&claims, &super::issuer::TokenSignature::Ecdsa);
    world.exchange(&id_token, "files", &[]).expect(200);
    let again = world.exchange(&id_token, "files", &[]).expect(400).json();
    assert_eq!(again["error"], "invalid_request");
    assert!(again["error_description"].as_str().unwrap().contains("can be used once"), "{again}");
    world.exchange(&world.issuer.token(&claims), "others", &[]).expect(400);
}
