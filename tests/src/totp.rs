//! An authenticator app: it makes the codes of second factors (RFC 6238) with code of its own. The
//! server under test has the app's clock, so that a test gets the next code without waiting.

use crate::clock::JumpingClock;
use aws_lc_rs::hmac;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Length of a time step in seconds.
const STEP: i64 = 30;
/// Position in a time step after a move of the clock, in seconds. A test then has the rest of the
/// step for its requests.
const AFTER_BEGIN: i64 = 2;

/// The app, on a device whose clock is that of the server.
#[derive(Debug, Default)]
pub struct Authenticator {
    clock: JumpingClock,
    ahead: AtomicI64,
}

impl Authenticator {
    /// An app with the right time.
    pub fn new() -> Self {
        Self::default()
    }

    /// The clock, which the test gives to the server.
    pub fn clock(&self) -> &JumpingClock {
        &self.clock
    }

    /// Moves the clock to the next time step; returns the code of this base32 secret there. No code
    /// of an earlier call is valid as this one.
    pub fn next_code(&self, secret: &str) -> String {
        let now = self.seconds();
        let begin = (now / STEP + 1) * STEP;
        let ahead = self.ahead.load(Ordering::Relaxed) + begin + AFTER_BEGIN - now;
        self.ahead.store(ahead, Ordering::Relaxed);
        self.clock.set(ahead);
        self.code(secret, 0)
    }

    /// The code of this base32 secret, as many time steps from now.
    pub fn code(&self, secret: &str, steps: i64) -> String {
        code_of_step(secret, self.seconds() / STEP + steps)
    }

    /// The time of the device in seconds since 1970.
    fn seconds(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
        i64::try_from(now).expect("a time") + self.ahead.load(Ordering::Relaxed)
    }
}

/// A code that is not valid now or in the steps around it.
pub fn wrong_code(app: &Authenticator, secret: &str) -> String {
    let valid: Vec<String> = (-3..=3).map(|steps| app.code(secret, steps)).collect();
    let mut guesses = (0..).map(|number| format!("{number:06}"));
    guesses.find(|guess| !valid.contains(guess)).expect("a wrong code")
}

/// The secret in an `otpauth` address.
pub fn secret_of(otpauth_url: &str) -> String {
    let query = otpauth_url.split_once('?').expect("a query").1;
    let secret = query.split('&').find_map(|pair| pair.strip_prefix("secret="));
    secret.expect("a secret").to_owned()
}

fn code_of_step(secret: &str, step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &from_base32(secret));
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let hash = tag.as_ref();
    let at = usize::from(hash[hash.len() - 1] & 0x0f);
    let word: [u8; 4] = hash[at..at + 4].try_into().expect("four bytes");
    format!("{:06}", (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000)
}

fn from_base32(text: &str) -> Vec<u8> {
    let bits: String = text
        .chars()
        .map(|letter| match letter {
            'A'..='Z' => u32::from(letter) - u32::from('A'),
            '2'..='7' => u32::from(letter) - u32::from('2') + 26,
            other => panic!("{other:?} is not a letter of base32"),
        })
        .map(|value| format!("{value:05b}"))
        .collect();
    let bytes = (0..bits.len() / 8).map(|at| u8::from_str_radix(&bits[at * 8..at * 8 + 8], 2));
    bytes.collect::<Result<_, _>>().expect("bits")
}
