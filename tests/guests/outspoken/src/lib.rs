//! A guest whose output tests compare with the server's log: it panics in `handle` and in `route`,
//! and prints text through WASI. It also uses the time and random numbers of WASI.

use packhouse_sdk::{Context, Description, Failure, Format, Intent, Params, Plan, Request, Response, Router};

/// The part of WASI that printing needs.
mod wasi {
    wit_bindgen::generate!({
        inline: "
            package packhouse:outspoken;
            world printing {
                import wasi:cli/stderr@0.2.6;
                import wasi:random/random@0.2.6;
                import wasi:clocks/wall-clock@0.2.6;
            }
            package wasi:random@0.2.6 {
                interface random { get-random-u64: func() -> u64; }
            }
            package wasi:clocks@0.2.6 {
                interface wall-clock {
                    record datetime { seconds: u64, nanoseconds: u32 }
                    now: func() -> datetime;
                }
            }
            package wasi:io@0.2.6 {
                interface error {
                    resource error { to-debug-string: func() -> string; }
                }
                interface streams {
                    use error.{error};
                    variant stream-error { last-operation-failed(error), closed }
                    resource output-stream {
                        blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
                    }
                }
            }
            package wasi:cli@0.2.6 {
                interface stderr {
                    use wasi:io/streams@0.2.6.{output-stream};
                    get-stderr: func() -> output-stream;
                }
            }
        ",
        world: "packhouse:outspoken/printing",
        generate_all,
    });
}

struct Outspoken;

impl Format for Outspoken {
    fn describe() -> Description {
        Description::new("outspoken", "0.1.0")
    }

    fn routes(router: &mut Router) {
        router.get("/panic", Plan::read, |_, _, _| panic!("the shelf is empty"));
        router.get("/route", plan_panics, |_, _, _| Ok(Response::no_content()));
        router.get("/print/{times}", Plan::read, print);
        router.get("/chance", Plan::read, chance);
    }
}

fn plan_panics(_: &Request, _: &Params) -> Result<Intent, Failure> {
    panic!("no such aisle")
}

/// Answers with two readings of the clock and a random number.
fn chance(_: &Context, _: &Request, _: &Params) -> Result<Response, Failure> {
    let sample = || {
        let now = wasi::wasi::clocks::wall_clock::now();
        let number = wasi::wasi::random::random::get_random_u64();
        format!("{}.{:09} {number}", now.seconds, now.nanoseconds)
    };
    Ok(Response::text(format!("{}\n{}", sample(), sample())))
}

/// Prints a line this many times, then one last line.
fn print(_: &Context, _: &Request, params: &Params) -> Result<Response, Failure> {
    let times = params.segment("times").parse().unwrap_or(0);
    let stderr = wasi::wasi::cli::stderr::get_stderr();
    for _ in 0..times {
        drop(stderr.blocking_write_and_flush(b"Traceback (most recent call last)\n"));
    }
    drop(stderr.blocking_write_and_flush(b"KeyError: 'shelf'\n"));
    Ok(Response::no_content())
}

packhouse_sdk::export!(Outspoken);
