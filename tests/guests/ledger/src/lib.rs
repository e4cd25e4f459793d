//! A plugin with a planted bug: it stores accounts with an amount each. It is several plugins in
//! one. A test changes the digit at the end of `VARIANT` in the component's bytes, without another
//! build. The resulting plugin has no bug, or calls other functions of the host. Every read looks at the query, so the host caches answers for each query separately. A
//! test that sends a new query each time reaches the plugin instead of the response cache.

use packhouse_sdk::{
    Context, Description, Expectation, Failure, Format, Intent, LoginState, Outcome, Params, Plan, Request,
    Response, Router,
};

/// The digit selects the variant: 0 has the bug, 1 has no bug, 2 calls another function of the host
/// first.
static VARIANT: [u8; 16] = *b"ledger variant 0";

struct Ledger;

impl Format for Ledger {
    fn describe() -> Description {
        Description::new("ledger", "0.1.0").kinds(&["hosted", "proxy"])
    }

    fn routes(router: &mut Router) {
        router.get("/-/denied", Plan::read, denied);
        router.get("/-/spin", Plan::read, |_, _, _| {
            loop {
                std::hint::spin_loop();
            }
        });
        router.get("/-/bad", Plan::read, |_, _, _| Ok(Response::text("bad").header("x", "a\r\nb")));
        router.get("/-/large/{pieces}", Plan::read, large);
        router.put("/-/secrets/{id}", |_, _| Ok(Intent::publish().body(1000)), secrets);
        router.get("/{account}", Plan::read, amount);
        router.put("/{account}", |_, _| Ok(Intent::publish().body(1000)), put);
    }
}

fn variant() -> u8 {
    // SAFETY: the pointer is to a static. The volatile read only keeps the compiler from using the
    // value at build time.
    unsafe { std::ptr::read_volatile(&raw const VARIANT[15]) }
}

/// Contains the bug: the stored text is not always a number.
fn amount(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    request.query_pairs();
    let target = cx.target()?;
    let account = params.segment("account");
    if variant() == b'2' && target.get("rates")?.is_some() {
        return Err(Failure::new(409, "rates", "There are rates."));
    }
    let entry = target.get(account)?.ok_or_else(|| Failure::new(404, "no_account", "No such account."))?;
    let text = String::from_utf8_lossy(&entry.value).into_owned();
    let amount = match (text.parse::<i64>(), variant()) {
        (Ok(amount), _) => amount,
        (Err(_), b'1') => return Ok(Response::text(format!("{account}: {text} is not an amount"))),
        (Err(error), _) => panic!("{account} holds no amount: {error}"),
    };
    let mut writer = cx.writer();
    writer.write(format!("{account}: {amount}").as_bytes())?;
    Ok(Response::blob(writer.finish()?))
}

fn put(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let body = request.planned_body()?;
    let amount = body.read(0, 1000)?;
    let mut transaction = cx.target()?.begin()?;
    transaction.put(params.segment("account"), &amount, Expectation::Anything, &[]);
    match transaction.commit()? {
        Outcome::Applied(_) => Ok(Response::created()),
        _ => Err(Failure::internal("another commit came first")),
    }
}

/// Begins a transaction during a read. The host refuses, and the plugin answers 500.
fn denied(cx: &Context, _: &Request, _: &Params) -> Result<Response, Failure> {
    cx.target()?.begin()?;
    Ok(Response::no_content())
}

fn large(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let mut writer = cx.writer();
    for piece in 0..params.segment("pieces").parse::<u8>().unwrap_or_default() {
        writer.write(&vec![piece; 1 << 20])?;
    }
    Ok(Response::blob(writer.finish()?))
}

/// Requests every secret that a recording must not contain, and repeats the secrets in its answer.
fn secrets(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let target = cx.target()?;
    let body = request.planned_body()?.read(0, 1000)?;
    let login = cx.identity().begin_login()?;
    let mut collected = vec![String::from_utf8_lossy(&body).into_owned(), login.id, login.url];
    if let LoginState::Granted(placeholder) = cx.identity().finish_login(params.segment("id"))? {
        collected.push(placeholder);
    }
    for token in cx.identity().tokens()? {
        collected.extend([token.id, token.hint]);
    }
    collected.push(cx.signing().sign(b"message")?.value.iter().map(|byte| format!("{byte:02x}")).collect());
    let settings = target.settings::<serde_json::Value>()?;
    let reply = cx.upstream("GET", settings["upstream"].as_str().unwrap_or_default()).start(target)?;
    collected.push(reply.address()?);
    for (name, value) in reply.headers()? {
        collected.push(format!("{name}: {value}"));
    }
    collected.push(settings.to_string());
    cx.log().info("all of it", &[("said", &collected.join(" "))]);
    let mut transaction = target.begin()?;
    transaction.put("said", collected.join("\n").as_bytes(), Expectation::Anything, &[]);
    if !matches!(transaction.commit()?, Outcome::Applied(_)) {
        return Err(Failure::internal("another commit came first"));
    }
    Ok(Response::text(collected.join("\n")))
}

packhouse_sdk::export!(Ledger);
