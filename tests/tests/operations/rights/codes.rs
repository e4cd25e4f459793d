//! Codes for new passwords and for invitations. A code becomes invalid when its maker loses rights.
//! Otherwise the maker could regain the rights with the code, or even take over the owner's
//! account.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, cli, database};
use serde_json::{Value, json};

use super::{is, member, permissions};

const MANAGER: &str = "manager@example.com";
const TARGET: &str = "target@example.com";
const TAKEN: &str = "the attacker's password";

/// Two members. One manages the other.
struct CodesFixture {
    server: Server,
    owner: Api,
    manager: Api,
    manager_id: String,
    target_id: String,
}

fn managing() -> Value {
    permissions(&["manage-members"], "*", &["read", "publish"])
}

impl CodesFixture {
    fn new() -> CodesFixture {
        let server = Server::start();
        let owner = Api::sign_in(&server);
        let manager_id = member(&owner, MANAGER, &managing());
        let target_id = member(&owner, TARGET, &permissions(&[], "*", &["read"]));
        let manager = Api::sign_in_as(&server, MANAGER, PASSWORD);
        CodesFixture { server, owner, manager, manager_id, target_id }
    }

    /// Creates a password reset code for the target member, as the manager.
    #[track_caller]
    fn reset(&self) -> String {
        let path = format!("/v1/members/{}/password-reset", self.target_id);
        self.manager.call("POST", &path).expect(201).field("reset_code")
    }

    /// Creates an invitation with all of the manager's permissions, as the manager.
    #[track_caller]
    fn invitation(&self) -> String {
        let body = json!({"email": "friend@example.com", "permissions": managing()});
        self.manager.post("/v1/invitations", &body).expect(201).field("code")
    }

    #[track_caller]
    fn set(&self, id: &str, permissions: &Value) {
        let path = format!("/v1/members/{id}/permissions");
        self.owner.send("PUT", &path, &json!({"permissions": permissions})).expect(200);
    }

    fn post(&self, path: &str, body: &Value) -> Response {
        let request = Request::new("POST", path).header("Content-Type", "application/json");
        Client::new(self.server.api()).send(request.body(body.to_string()))
    }

    fn complete(&self, code: &str) -> Response {
        self.post(&format!("/v1/password-resets/{code}"), &json!({"password": TAKEN}))
    }

    fn accept(&self, code: &str) -> Response {
        self.post(&format!("/v1/invitations/{code}/accept"), &json!({"password": TAKEN}))
    }

    fn signs_in(&self, email: &str, password: &str) -> bool {
        self.post("/v1/sessions", &json!({"email": email, "password": password})).status == 201
    }

    /// Checks that neither code works.
    #[track_caller]
    fn have_ended(&self, reset: &str, invitation: &str) {
        is(&self.complete(reset), 404, "not_found");
        is(&self.accept(invitation), 404, "not_found");
        assert!(self.signs_in(TARGET, PASSWORD), "the password was taken");
        assert!(!self.signs_in("friend@example.com", TAKEN), "the invitation was accepted");
    }
}

#[test]
fn codes_work_once_while_no_rights_change() {
    let world = CodesFixture::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    // Setting the same permissions again changes nothing. Changes of other members do not matter
    // either.
    world.set(&world.manager_id, &managing());
    member(&world.owner, "other@example.com", &permissions(&[], "*", &["read"]));
    world.complete(&reset).expect(204);
    world.accept(&invitation).expect(201);
    is(&world.complete(&reset), 404, "not_found");
    is(&world.accept(&invitation), 404, "not_found");
    assert!(world.signs_in(TARGET, TAKEN) && world.signs_in("friend@example.com", TAKEN));
}

#[test]
fn a_member_who_loses_rights_loses_its_codes() {
    let world = CodesFixture::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    world.set(&world.manager_id, &permissions(&[], "*", &["read"]));
    world.have_ended(&reset, &invitation);
    // The codes stay invalid when the manager gets the rights back. The person who revoked the
    // rights also meant to revoke the codes.
    world.set(&world.manager_id, &managing());
    world.have_ended(&reset, &invitation);
}

#[test]
fn a_member_who_loses_rights_during_a_request_loses_its_codes() {
    let world = CodesFixture::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    world.set(&world.manager_id, &permissions(&[], "*", &["read"]));
    world.set(&world.manager_id, &managing());
    world.have_ended(&reset, &invitation);
}

#[test]
fn the_codes_of_a_deleted_member_are_invalid() {
    let world = CodesFixture::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    world.owner.call("DELETE", &format!("/v1/members/{}", world.manager_id)).expect(204);
    world.have_ended(&reset, &invitation);
}

#[test]
fn earlier_codes_do_not_work_for_a_member_with_more_rights() {
    let world = CodesFixture::new();
    let reset = world.reset();
    // An operator changes the rights with the command line while the server runs.
    cli::packhouse(world.server.data(), &["member", "grant", TARGET, "--owner"], "").success();
    is(&world.complete(&reset), 404, "not_found");
    assert!(world.signs_in(TARGET, PASSWORD), "an owner's password was taken");
}

#[test]
fn a_former_owner_cannot_reset_the_owners_password() {
    let world = CodesFixture::new();
    let everything = permissions(
        &["manage-owner-account", "manage-members", "manage-repositories", "manage-subscribers"],
        "*",
        &["read", "publish", "delete"],
    );
    world.set(&world.manager_id, &everything);
    let owner = world.owner.call("GET", "/v1/me").expect(200).field("id");
    let path = format!("/v1/members/{owner}/password-reset");
    let reset = world.manager.call("POST", &path).expect(201).field("reset_code");
    let invited = json!({"email": "back@example.com", "permissions": everything});
    let invitation = world.manager.post("/v1/invitations", &invited).expect(201).field("code");
    world.set(&world.manager_id, &permissions(&[], "*", &["read"]));
    is(&world.complete(&reset), 404, "not_found");
    is(&world.accept(&invitation), 404, "not_found");
    assert!(world.signs_in(OWNER, PASSWORD), "the owner's password was taken");
}

#[test]
fn the_rights_behind_a_code_are_checked_when_it_is_used() {
    // The test writes the permissions into the database, so nothing invalidates the codes. The
    // server must decide by the permissions alone.
    for (email, left) in [
        (MANAGER, "{}"),
        (MANAGER, r#"{"organization":["manage-members"],"repositories":[]}"#),
        (TARGET, r#"{"organization":["manage-owner-account"],"repositories":[]}"#),
    ] {
        let world = CodesFixture::new();
        let (reset, invitation) = (world.reset(), world.invitation());
        let set = format!("update members set permissions = '{left}' where email = '{email}'");
        database::sqlite(&world.server, &set);
        is(&world.complete(&reset), 404, "not_found");
        assert!(world.signs_in(TARGET, PASSWORD), "{email} {left}: the password was taken");
        if email == MANAGER {
            is(&world.accept(&invitation), 404, "not_found");
            assert!(!world.signs_in("friend@example.com", TAKEN), "the invitation was accepted");
        }
    }
}
