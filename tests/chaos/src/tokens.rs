//! The load of tokens: workers create tokens, use them, rotate them without overlap and revoke
//! them. They also use revoked tokens again and again.

use crate::cluster::{Addresses, PATIENCE};
use crate::formats::{Answer, Format, TestRepositories};
use crate::history::{History, Operation, Outcome, Way};
use crate::random::Random;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Client, Request};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Number of the newest revoked tokens that workers still try.
const TRIED: usize = 40;
const BREATH: Duration = Duration::from_millis(6);
/// The path of a file that workers read with tokens; no worker deletes it.
const FILE: &str = "/repositories/maven/org/example/kept/1.0/kept-1.0.jar";

#[derive(Clone, Debug)]
struct Token {
    id: String,
    secret: String,
}

/// The state that the threads share.
#[derive(Debug)]
pub struct Tokens<'a> {
    addresses: &'a Addresses,
    shop: &'a TestRepositories,
    history: &'a History,
    live: Mutex<Vec<Token>>,
    revoked: Mutex<Vec<Token>>,
}

impl<'a> Tokens<'a> {
    /// Starts without tokens, and publishes the file that workers read with them.
    pub fn new(addresses: &'a Addresses, shop: &'a TestRepositories, history: &'a History) -> Self {
        shop.by(Way::Server(0), addresses).put(FILE, "kept").expect(201);
        Self { addresses, shop, history, live: Mutex::default(), revoked: Mutex::default() }
    }

    /// Creates and ends tokens until `stop` is set.
    pub fn change(&self, stop: &AtomicBool, seed: u64) {
        let mut random = Random::new(seed, 1_000);
        while !stop.load(Ordering::SeqCst) {
            self.create();
            std::thread::sleep(Duration::from_millis(200 + random.below(500) as u64));
            let Some(token) = self.live.lock().unwrap().first().cloned() else { continue };
            let ended = if random.percent(40) { self.rotate(&token) } else { self.revoke(&token) };
            // Without an answer the outcome is unknown, so the loop repeats the request until a
            // server answers.
            let mut ended = ended;
            while !ended && !stop.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(100));
                ended = self.revoke(&token);
            }
            self.live.lock().unwrap().retain(|live| live.id != token.id);
            let mut revoked = self.revoked.lock().unwrap();
            revoked.push(token.clone());
            if revoked.len() > TRIED {
                revoked.remove(0);
            }
            drop(revoked);
            for number in 0..self.addresses.servers.len() {
                self.show(&token, Way::Server(number), false);
            }
        }
    }

    /// Uses valid and revoked tokens on each server until `stop` is set.
    pub fn try_them(&self, stop: &AtomicBool, seed: u64) {
        let mut random = Random::new(seed, 2_000);
        while !stop.load(Ordering::SeqCst) {
            let of = if random.percent(30) { &self.live } else { &self.revoked };
            let token = {
                let tokens = of.lock().unwrap();
                let token = (!tokens.is_empty()).then(|| tokens[random.below(tokens.len())].clone());
                // The token that was revoked last is the most likely one to be still in a server's
                // cache.
                if random.percent(50) { tokens.last().cloned() } else { token }
            };
            if let Some(token) = token {
                self.show(&token, Way::Server(random.below(self.addresses.servers.len())), false);
            }
            std::thread::sleep(BREATH);
        }
    }

    /// Uses each of the remembered revoked tokens on this server, at the end of a round.
    pub fn show_revoked(&self, server: usize) {
        let revoked = self.revoked.lock().unwrap().clone();
        revoked.iter().for_each(|token| self.show(token, Way::Server(server), true));
    }

    /// The id of the last revoked token.
    pub fn last_revoked(&self) -> Option<String> {
        self.revoked.lock().unwrap().last().map(|token| token.id.clone())
    }

    fn show(&self, token: &Token, way: Way, last: bool) {
        let Way::Server(number) = way else { return };
        let client = Client::new(self.addresses.servers[number]).basic(OWNER, &token.secret).within(PATIENCE);
        let begun = self.history.now();
        let outcome = Outcome::of(&client.try_send(Request::new("GET", FILE)), &[200]);
        self.history.record(begun, way, Operation::Use { token: token.id.clone() }, outcome, last);
    }

    fn create(&self) {
        let begun = self.history.now();
        let answer = self.confirm("create_token").and_then(|confirmed| match confirmed {
            Ok(confirmation) => {
                let body = json!({
                    "name": "chaos", "scope": ["read"], "format": "generic", "expires_at": null,
                    "repositories": [self.shop.id(Format::Maven)], "confirmation_token": confirmation,
                });
                self.call("POST", "/v1/tokens", &body)
            }
            Err(refused) => Ok(refused),
        });
        let outcome = Outcome::of(&answer, &[201]);
        let token = if outcome == Outcome::Done { answer.ok().map(|answer| token(&answer)) } else { None };
        let id = token.as_ref().map(|token| token.id.clone()).unwrap_or_default();
        self.history.record(begun, Way::Balanced, Operation::Create { token: id }, outcome, false);
        self.live.lock().unwrap().extend(token);
    }

    fn revoke(&self, token: &Token) -> bool {
        let begun = self.history.now();
        let answer = self.api().try_send(Request::new("DELETE", &format!("/v1/tokens/{}", token.id)));
        let outcome = Outcome::of(&answer, &[204]);
        let done = outcome == Outcome::Done;
        self.history.record(
            begun,
            Way::Balanced,
            Operation::Revoke { token: token.id.clone() },
            outcome,
            false,
        );
        done
    }

    fn rotate(&self, old: &Token) -> bool {
        let begun = self.history.now();
        let answer = self.confirm("rotate_token").and_then(|confirmed| match confirmed {
            Ok(confirmation) => {
                let body = json!({"overlap_hours": 0, "confirmation_token": confirmation});
                self.call("POST", &format!("/v1/tokens/{}/rotation", old.id), &body)
            }
            Err(refused) => Ok(refused),
        });
        let outcome = Outcome::of(&answer, &[201]);
        let done = outcome == Outcome::Done;
        self.history.record(
            begun,
            Way::Balanced,
            Operation::Revoke { token: old.id.clone() },
            outcome,
            false,
        );
        if let (true, Ok(answer)) = (done, answer) {
            let token = token(&answer);
            let what = Operation::Create { token: token.id.clone() };
            self.history.record(begun, Way::Balanced, what, Outcome::Done, false);
            self.live.lock().unwrap().push(token);
        }
        done
    }

    /// Requests a confirmation; returns it, or the server's answer if the server refused.
    fn confirm(&self, action: &str) -> std::io::Result<Result<String, packhouse_tests::Response>> {
        let body = json!({"action": action, "password": PASSWORD});
        let answer = self.call("POST", "/v1/confirmations", &body)?;
        Ok(if answer.status == 201 { Ok(answer.field("confirmation_token")) } else { Err(answer) })
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let request = Request::new(method, path).header("Content-Type", "application/json");
        self.api().try_send(request.body(body.to_string()))
    }

    fn api(&self) -> Client {
        self.shop.api.client().clone().at(self.addresses.api).within(PATIENCE)
    }
}

fn token(answer: &packhouse_tests::Response) -> Token {
    Token { id: answer.field("id"), secret: answer.field("secret") }
}
