//! A format for leaflets. A leaflet has one name, and clients find it below the repository's own
//! address and below `/odd/in/REPOSITORY/`. The format's description uses every option for refusals
//! and credentials, each differently from the real formats. Tests thus show that the host obeys the
//! description and does not look at the format's name.

use packhouse_sdk::{
    Authorization, Challenge, Claim, CodeKind, Context, Description, ErrorTemplate, Expectation, Failure,
    Format, Intent, Outcome, Params, Plan, RefusalWords, Request, Response, Router,
};
use serde_json::json;

pub struct Odd;

impl Format for Odd {
    fn describe() -> Description {
        let challenge = Challenge::scheme("Odd-Key")
            .parameter("of", "{host}")
            .parameter("ask", "{base_url}/odd/help")
            .parameter("scope", "{scope}");
        Description::new("odd", "0.1.0")
            .kinds(&["hosted", "proxy", "group"])
            .errors(errors())
            .own_code("Odd_Reason", CodeKind::ReasonCode)
            .challenge(challenge.into())
            .authorization(&[Authorization::Basic, Authorization::Bare])
            .checks_username()
            .token_usernames(&["robot", "machine"])
            .own_tokens()
            .trusted_publishing(&["/odd-exchange/{rest..}"])
            .limit_with("leaflet", 10, RefusalWords::new("too-long", "{sentence} Fold it.").status(422))
            .limit("plain", 20)
            .open_requests(&[])
            .claim(Claim::new("ping", "/odd/ping/"))
            .claim(Claim::new("in", "/odd/in/{repository}/"))
    }

    fn routes(router: &mut Router) {
        rows(router);
        router.claim("in", rows);
        router.claim("ping", |router| {
            router.get("/", Plan::open, |_, _, _| Ok(Response::text("pong")));
            router.get("/closed", Plan::read, |_, _, _| Ok(Response::text("pong to those that are known")));
        });
    }
}

/// The template of error bodies, unlike those of the real formats. Each problem is an array of two
/// strings. The member that contains the code depends on the kind of the code.
fn errors() -> ErrorTemplate {
    let body = json!({
        "trouble": {"number": "{status}", "words": "{message}", "list": "{problems}"},
        "at": "{title} ({request_id})",
        "more": "{detail}",
    });
    ErrorTemplate::new(body)
        .content_type("application/vnd.odd+json")
        .problem(json!(["{code_upper}", "{message}"]))
        .members(CodeKind::Error, json!({"host": "{code}"}))
        .members(CodeKind::Code, json!({"host_code": "{host_code_upper}"}))
        .members(
            CodeKind::ReasonCode,
            json!({"host_reason": "{host_code_lower}", "reason": "{code}", "said": "{sentence}"}),
        )
        .members(CodeKind::Own, json!({"own": "{code_lower}"}))
        .refusal("unauthorized", RefusalWords::new("who", "Who are you?"))
        .refusal(
            "writes_not_permitted_on_group",
            RefusalWords::code("{host_code}-here").members(json!({"group": true})),
        )
        .refusal("404", RefusalWords::new("nothing", "Nothing of this kind."))
        .refusal("5xx", RefusalWords::new("later", "Later. {sentence}"))
}

fn rows(router: &mut Router) {
    router.get("/{leaflet}", Plan::read, fetch);
    router.put("/{leaflet}", plan_put, put);
    router.post(
        "/{leaflet}",
        |_, _| Err(Failure::new(418, "Own_Code", "No posts.").detail(&json!({"a": 1}))),
        put,
    );
}

/// Plans a PUT; the leaflet's name selects the size limit.
fn plan_put(_: &Request, params: &Params) -> Result<Intent, Failure> {
    let intent = Intent::publish().subject(params.segment("leaflet")).body(1000);
    Ok(match params.segment("leaflet") {
        "plain" => intent.under("plain"),
        "small" => intent.under("leaflet").body(5),
        "wrong" => intent.under("nobody-described-it"),
        "free" => intent,
        _ => intent.under("leaflet"),
    })
}

fn fetch(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    match cx.target()?.get(params.segment("leaflet"))? {
        Some(entry) => Ok(Response::bytes(entry.value)),
        None if params.segment("leaflet") == "withdrawn" => {
            Err(Failure::new(410, "Odd_Reason", "It was withdrawn."))
        }
        None => Err(Failure::new(404, "No_Leaflet", "There is no such leaflet.")),
    }
}

fn put(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| Failure::internal("a PUT without its body"))?;
    let mut change = cx.target()?.begin()?;
    change.put(params.segment("leaflet"), &body.read(0, 1000)?, Expectation::Anything, &[]);
    match change.commit()? {
        Outcome::Applied(_) => Ok(Response::created()),
        Outcome::Stale(_) | Outcome::UnknownBlobs(_) => Err(Failure::internal("an unconditional put failed")),
    }
}

packhouse_sdk::export!(Odd);
