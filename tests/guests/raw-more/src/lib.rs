//! A later version of `raw`, which reads the data that `raw` wrote and marks each answer. It
//! requires more than `raw`: a path at the root, a request header, a setting, another import.

use packhouse_sdk::{
    Claim, Context, Description, Failure, Format, Params, Plan, Request, Response, Router, Setting,
};

pub struct More;

impl Format for More {
    fn describe() -> Description {
        Description::new("raw", "0.2.0")
            .claim(Claim::new("raw", "/raw/{repository}/"))
            .request_headers(&["x-more"])
            .setting("greeting", Setting::text("hello", "What it says"))
    }

    fn routes(router: &mut Router) {
        router.get("/{path..}", Plan::read, fetch);
        router.claim("raw", |router| {
            router.get("/{path..}", Plan::read, fetch);
        });
    }
}

fn fetch(cx: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let missing = || Failure::not_found("Nothing here has such a file");
    let record = cx.target()?.get_json(&params.joined("path"))?.ok_or_else(missing)?;
    let blob = cx.target()?.blob(&record.value)?.ok_or_else(missing)?;
    let moment = cx.now().to_string();
    Ok(Response::blob(blob).header("x-edition", "more").header("x-moment", moment))
}

packhouse_sdk::export!(More);
