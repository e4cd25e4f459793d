//! A policy that does what no policy should; its settings select the behaviour.

use packhouse_policy::{Context, Description, Facts, Policy, Ruling};
use serde::Deserialize;

#[derive(Deserialize)]
struct Settings {
    does: String,
}

struct Outlaw;

impl Policy for Outlaw {
    type Settings = Settings;

    fn describe() -> Description {
        Description::new("outlaw", "0.1.0", "Does what no policy should")
            .setting("does", "string", "What", true)
    }

    fn judge(settings: &Settings, _context: &Context, version: &Facts) -> Ruling {
        match settings.does.as_str() {
            "slow" => loop {
                std::hint::black_box(version);
            },
            "trap" => panic!("it has fallen"),
            "grow" => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(vec![7; 1 << 20]);
                }
            }
            "huge" => Ruling::Deny("x".repeat(8 << 20)),
            "lines" => Ruling::Deny("one\r\nSet-Cookie: two".to_owned()),
            "deny" => Ruling::Deny(format!("{} is not wanted", version.title())),
            _ => Ruling::Allow,
        }
    }
}

packhouse_policy::export_policy!(Outlaw);
