//! The second factor in the portal: its set-up, the code at the sign-in and at confirmations, and
//! organizations that require one. Everything works without scripts.

use packhouse_tests::person::{Person, hidden, inside};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::totp::{Authenticator, secret_of, wrong_code};
use packhouse_tests::{Api, MavenRepository, Response, Server};
use serde_json::json;

const PAGE: &str = "/account/second-factor";

fn start(app: &Authenticator) -> Server {
    Server::with().clock(app.clock()).start()
}

/// Sets up a second factor through the page; returns its secret and its recovery codes.
#[track_caller]
fn set_up(person: &mut Person, app: &Authenticator) -> (String, Vec<String>) {
    let page = person.send_form(PAGE, &[("do", "begin")]).expect(200).text();
    let secret = inside(&page, "data-secret").unwrap();
    let confirm = [("csrf", hidden(&page, "csrf").unwrap()), ("do", "confirm".to_owned())];
    let send = |person: &mut Person, code: &str| {
        let fields: Vec<(&str, &str)> =
            confirm.iter().map(|(name, value)| (*name, value.as_str())).chain([("code", code)]).collect();
        person.post(PAGE, &fields)
    };
    let again = send(person, &wrong_code(app, &secret)).expect(400).text();
    assert!(again.contains("role=\"alert\"") && again.contains("The code is wrong"), "{again}");
    assert_eq!(inside(&again, "data-secret").unwrap(), secret, "the page shows the secret again");
    let page = send(person, &app.next_code(&secret)).expect(200).text();
    let codes: Vec<String> = inside(&page, "data-secret").unwrap().lines().map(ToOwned::to_owned).collect();
    assert_eq!(codes.len(), 10, "{page}");
    (secret, codes)
}

/// Sends the form for the code on this page.
#[track_caller]
fn enter_code(person: &mut Person, page: &str, code: &str) -> Response {
    let field = |name: &str| hidden(page, name).unwrap_or_else(|| panic!("no field {name}: {page}"));
    let (csrf, pending, back) = (field("csrf"), field("pending"), field("return_to"));
    person.post("/sign-in", &[("csrf", &csrf), ("pending", &pending), ("return_to", &back), ("code", code)])
}

#[test]
fn the_sign_in_asks_for_the_code_after_the_right_password() {
    let app = Authenticator::new();
    let server = start(&app);
    let (secret, codes) = set_up(&mut Person::owner(&server), &app);
    let mut person = Person::new(&server);
    let wrong = person.send_form("/sign-in", &[("email", OWNER), ("password", "wrong")]).expect(401).text();
    assert!(!wrong.contains(">Code<"), "{wrong}");
    let right = [("email", OWNER), ("password", PASSWORD)];
    let page = person.send_form("/sign-in?return_to=/tokens", &right).expect(200).text();
    assert!(page.contains("<label for=\"code\">Code</label>"), "{page}");
    assert!(!page.contains(PASSWORD) && !page.contains("name=\"password\""), "{page}");
    person.get("/tokens").expect(303);
    let refused = enter_code(&mut person, &page, &wrong_code(&app, &secret)).expect(401).text();
    assert!(refused.contains("The code is wrong or was already used."), "{refused}");
    let code = app.next_code(&secret);
    enter_code(&mut person, &refused, &code).expect(303);
    person.get("/tokens").expect(200);

    let mut other = Person::new(&server);
    let page = other.send_form("/sign-in", &right).expect(200).text();
    enter_code(&mut other, &page, &code).expect(401);
    enter_code(&mut other, &page, &codes[0]).expect(303);
    other.get("/account").expect(200);
    // Everything in one form works too.
    let (mut third, code) = (Person::new(&server), app.next_code(&secret));
    third.send_form("/sign-in", &[right[0], right[1], ("code", &code)]).expect(303);
}

#[test]
fn a_password_that_was_changed_meanwhile_needs_to_be_entered_again() {
    let app = Authenticator::new();
    let server = start(&app);
    let mut owner = Person::owner(&server);
    let (secret, _) = set_up(&mut owner, &app);
    let mut person = Person::new(&server);
    let right = [("email", OWNER), ("password", PASSWORD)];
    let page = person.send_form("/sign-in", &right).expect(200).text();
    let new = ("new_password", "another long password");
    owner.send_form("/account", &[("do", "password"), ("current_password", PASSWORD), new]).expect(303);
    let refused = enter_code(&mut person, &page, &app.next_code(&secret)).expect(401).text();
    assert!(refused.contains("Enter your password again."), "{refused}");
    assert!(refused.contains("name=\"password\""), "{refused}");
}

#[test]
fn a_confirmation_asks_for_password_and_code() {
    let app = Authenticator::new();
    let server = start(&app);
    let repository = MavenRepository::create(&server, "libs");
    let mut person = Person::owner(&server);
    let (secret, _) = set_up(&mut person, &app);
    let fields = [
        ("do", "create"),
        ("name", "ci"),
        ("scope", "read"),
        ("repositories", repository.id.as_str()),
        ("format", "generic"),
        ("never", "yes"),
    ];
    let prompt = person.send_form("/tokens", &fields).expect(200).text();
    assert!(prompt.contains("<label for=\"code\">Code</label>"), "{prompt}");
    let missing = person.confirm_form("/tokens", &fields).expect(401).text();
    assert!(missing.contains("role=\"alert\""), "{missing}");
    let code = app.next_code(&secret);
    let confirmed: Vec<(&str, &str)> = fields.into_iter().chain([("code", code.as_str())]).collect();
    person.confirm_form("/tokens", &confirmed).expect(201);
}

#[test]
fn a_member_sets_up_the_required_second_factor_before_anything_else() {
    let app = Authenticator::new();
    let server = start(&app);
    let api = Api::sign_in(&server);
    api.patch("/v1/organization", &json!({"require_second_factor": true})).expect(200);
    let mut person = Person::owner(&server);
    for page in ["/repositories", "/tokens", "/members"] {
        assert_eq!(person.get(page).expect(303).header("location"), Some(PAGE));
    }
    let csrf = person.csrf("/account");
    person.post("/tokens", &[("csrf", &csrf), ("do", "create")]).expect(403);
    person.post("/account", &[("csrf", &csrf), ("do", "name"), ("name", "Other")]).expect(403);
    assert!(person.get(PAGE).expect(200).text().contains("requires a second factor"));
    let (secret, _) = set_up(&mut person, &app);
    person.get("/repositories").expect(200);
    let page = person.get(PAGE).expect(200).text();
    assert!(page.contains("you cannot remove yours") && !page.contains(">Remove<"), "{page}");

    api.patch("/v1/organization", &json!({"require_second_factor": false})).expect(200);
    let remove = |person: &mut Person, code: &str| {
        person.send_form(PAGE, &[("do", "remove"), ("password", PASSWORD), ("code", code)])
    };
    remove(&mut person, "000").expect(401);
    remove(&mut person, &app.next_code(&secret)).expect(303);
    Person::owner(&server).get("/repositories").expect(200);
}

#[test]
fn the_address_of_a_secret_opens_an_app() {
    let app = Authenticator::new();
    let server = start(&app);
    let mut person = Person::owner(&server);
    let page = person.send_form(PAGE, &[("do", "begin")]).expect(200).text();
    let link = page.split("href=\"otpauth://").nth(1).unwrap().split('"').next().unwrap();
    let secret = secret_of(&link.replace("&amp;", "&"));
    assert_eq!(inside(&page, "data-secret").unwrap(), secret);
}
