//! Canaries: a share of the clients, and the end of one that fails.

use super::*;

/// Tokens without an owner, which are many at once.
fn many_tokens(server: &Server, count: usize) -> Vec<String> {
    let secret = |number: usize| format!("secret number {number}");
    let line = |number: usize| {
        json!({"name": format!("t{number}"), "sha256": sha256(secret(number).as_bytes()), "scope": ["read"],
            "repositories": ["accounts"], "expires_at": null})
        .to_string()
    };
    let file = server.data().join("tokens.jsonl");
    std::fs::write(&file, (0..count).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    cli::packhouse(server.data(), &["token", "import", "--legacy", file.to_str().unwrap()], "").well();
    (0..count).map(secret).collect()
}

#[test]
fn a_canary_takes_a_share_of_the_clients_and_is_taken_back() {
    let plugins = plugins();
    let server = with(&plugins).start();
    let api = Api::sign_in(&server);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    repository.put("dinner", "20").expect(201);
    let path = repository.path("dinner");
    let (old, new) = ("dinner: 20", "dinner: about 20");
    let candidate = install(&api, b'6');
    let tokens = many_tokens(&server, 300);
    let ask = |secret: &str| server.anonymous().basic("x", secret).get(&path).expect(200).text();
    let canary = |percent: u32, most: u64, digest: &str| {
        let body = json!({"digest": digest, "mode": "canary", "repositories": [repository.id], "percent": percent, "max_failures": most});
        try_out(&api, &body).expect(200);
    };
    canary(30, 3, &candidate);
    let first: Vec<String> = tokens.iter().map(|secret| ask(secret)).collect();
    assert!(first.iter().all(|text| text == old || text == new));
    let taken = first.iter().filter(|text| *text == new).count();
    println!("{taken} of {} tokens are the canary's, of whom 30 % were asked for", tokens.len());
    assert!((50..130).contains(&taken), "{taken}");
    for (secret, text) in tokens.iter().zip(&first) {
        assert_eq!(ask(secret), *text, "one client sees one component, kept answers and all");
    }
    // A larger share keeps those that it has.
    canary(60, 3, &candidate);
    let more: Vec<String> = tokens.iter().map(|secret| ask(secret)).collect();
    assert!(first.iter().zip(&more).all(|(first, more)| first == old || more == new));
    assert!(more.iter().filter(|text| *text == new).count() > taken);
    // What was kept of it is no call; a question that was not asked before is one.
    let asked_anew = |secret: &String| {
        server.anonymous().basic("x", secret).get(&format!("{path}?anew")).expect(200).text() == new
    };
    assert!(tokens.iter().any(asked_anew));
    let found = counted(&api, "calls", 1);
    assert_eq!((&found["failed"], &found["percent"]), (&json!(0), &json!(60)), "{found}");
    eventually("the metrics count them", || {
        measured(&server, "canary", "answered").filter(|count| *count > 0)
    });
    assert_eq!(measured(&server, "canary", "failed"), Some(0));
    // A pin goes before it.
    let own = active(&api);
    let pin = format!("/v1/repositories/{}/plugin", repository.id);
    api.send("PUT", &pin, &json!({"digest": own})).expect(200);
    assert!(tokens.iter().take(50).all(|secret| ask(secret) == old));
    api.send("PUT", &pin, &json!({"digest": null})).expect(200);

    // Activating it ends its trial, and so does going back.
    let activate = json!({"digest": candidate, "expected_active": own});
    api.post("/v1/plugins/ledger/activate", &activate).expect(200);
    api.call("GET", TRIAL).expect(404);
    assert_eq!((ask(&tokens[0]).as_str(), listed(&api, &candidate).as_str()), (new, "active"));
    canary(50, 3, &own);
    assert_eq!(listed(&api, &own), "candidate", "also one that ran before");
    api.call("POST", "/v1/plugins/ledger/rollback").expect(200);
    api.call("GET", TRIAL).expect(404);
    assert_eq!(ask(&tokens[0]), old);

    // One that fails is taken back by itself.
    let trap = install(&api, b'3');
    canary(100, 3, &trap);
    let mut failures = 0;
    eventually("the canary is taken back", || {
        let answer = server.anonymous().basic("x", &tokens[0]).get(&format!("{path}?{failures}"));
        failures += u64::from(answer.status == 500);
        (answer.status == 200).then_some(())
    });
    assert!(failures >= 4, "{failures}");
    let found = eventually("it is shown", || {
        let found = state(&api);
        (found["state"] == "taken_back").then_some(found)
    });
    assert_eq!(found["failed"], failures, "{found}");
    assert!(found["ended_at"].is_i64() && listed(&api, &trap) == "candidate", "{found}");
    let events = api.call("GET", "/v1/audit-events?limit=100").expect(200).text();
    assert!(events.contains("take_plugin_back"), "{events}");
}
