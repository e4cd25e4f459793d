//! Codes for new passwords and invitations do not outlive the rights of who made them: whoever loses rights would keep a way back to
//! them, up to the owner's account.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, cli, database};
use serde_json::{Value, json};

use super::{is, member, permissions};

const MANAGER: &str = "manager@example.com";
const TARGET: &str = "target@example.com";
const TAKEN: &str = "the attacker's password";

/// Two members: one who manages the other.
struct World {
    server: Server,
    owner: Api,
    manager: Api,
    manager_id: String,
    target_id: String,
}

fn managing() -> Value {
    permissions(&["manage-members"], "*", &["read", "publish"])
}

impl World {
    fn new() -> World {
        let server = Server::start();
        let owner = Api::sign_in(&server);
        let manager_id = member(&owner, MANAGER, &managing());
        let target_id = member(&owner, TARGET, &permissions(&[], "*", &["read"]));
        let manager = Api::sign_in_as(&server, MANAGER, PASSWORD);
        World { server, owner, manager, manager_id, target_id }
    }

    /// A code for the target's password, by the manager.
    #[track_caller]
    fn reset(&self) -> String {
        let path = format!("/v1/members/{}/password-reset", self.target_id);
        self.manager.call("POST", &path).expect(201).field("reset_code")
    }

    /// An invitation by the manager, for all that the manager may do.
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

    /// Neither code does anything.
    #[track_caller]
    fn have_ended(&self, reset: &str, invitation: &str) {
        is(&self.complete(reset), 404, "not_found");
        is(&self.accept(invitation), 404, "not_found");
        assert!(self.signs_in(TARGET, PASSWORD), "the password was taken");
        assert!(!self.signs_in("friend@example.com", TAKEN), "the invitation was accepted");
    }
}

#[test]
fn as_long_as_nothing_changes_codes_are_good_once() {
    let world = World::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    // Permissions as they were are no change, and neither is what becomes of others.
    world.set(&world.manager_id, &managing());
    member(&world.owner, "other@example.com", &permissions(&[], "*", &["read"]));
    world.complete(&reset).expect(204);
    world.accept(&invitation).expect(201);
    is(&world.complete(&reset), 404, "not_found");
    is(&world.accept(&invitation), 404, "not_found");
    assert!(world.signs_in(TARGET, TAKEN) && world.signs_in("friend@example.com", TAKEN));
}

#[test]
fn who_loses_rights_has_no_code_left() {
    let world = World::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    world.set(&world.manager_id, &permissions(&[], "*", &["read"]));
    world.have_ended(&reset, &invitation);
    // Nor when the rights come back: who took them away meant what was begun with them as well.
    world.set(&world.manager_id, &managing());
    world.have_ended(&reset, &invitation);
}

#[test]
fn who_loses_rights_on_the_way_has_no_code_left() {
    let world = World::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    world.set(&world.manager_id, &permissions(&[], "*", &["read"]));
    world.set(&world.manager_id, &managing());
    world.have_ended(&reset, &invitation);
}

#[test]
fn who_is_deleted_leaves_no_code_behind() {
    let world = World::new();
    let (reset, invitation) = (world.reset(), world.invitation());
    world.owner.call("DELETE", &format!("/v1/members/{}", world.manager_id)).expect(204);
    world.have_ended(&reset, &invitation);
}

#[test]
fn who_rises_is_out_of_reach_of_codes_from_before() {
    let world = World::new();
    let reset = world.reset();
    // By the command line, beside the running server.
    cli::packhouse(world.server.data(), &["member", "grant", TARGET, "--owner"], "").well();
    is(&world.complete(&reset), 404, "not_found");
    assert!(world.signs_in(TARGET, PASSWORD), "an owner's password was taken");
}

#[test]
fn a_former_owner_does_not_come_back_by_the_owners_password() {
    let world = World::new();
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
fn codes_are_judged_when_they_are_used() {
    // As another server would have left it that ended no codes: the rows alone say what may be done now.
    for (email, left) in [
        (MANAGER, "{}"),
        (MANAGER, r#"{"organization":["manage-members"],"repositories":[]}"#),
        (TARGET, r#"{"organization":["manage-owner-account"],"repositories":[]}"#),
    ] {
        let world = World::new();
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
