//! One-time codes of authenticator apps (RFC 6238: HMAC-SHA-1, 6 digits, steps of 30 seconds), and
//! the recovery codes for a member who has lost the app.
//!
//! Recovery codes are 80 random bits each. Only their SHA-256 is stored.

use hmac::{Hmac, KeyInit as _, Mac as _};
use packhouse_config::Secret;
use packhouse_store::MemberId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{SealError, Sealer};

/// Length of a secret in bytes, as RFC 4226 recommends it.
const SECRET_BYTES: usize = 20;
/// Length of a step in ms.
const STEP_MS: i64 = 30_000;
/// Number of digits of a code.
const DIGITS: usize = 6;
/// Number of different codes with so many digits.
const CODES: u32 = 1_000_000;
/// Number of recovery codes of a member.
const RECOVERY_CODES: usize = 10;
/// Number of random bytes of a recovery code.
const RECOVERY_BYTES: usize = 10;
/// Number of letters of a recovery code, without separators.
const RECOVERY_LETTERS: usize = 16;
/// Length of a group of letters in a recovery code.
const GROUP: usize = 4;
/// Longest text that can be a code, in bytes.
const LONGEST: usize = 64;
/// The alphabet of base32 (RFC 4648).
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Characters that are escaped in an `otpauth` address.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The secret that an authenticator app shares with the server.
pub struct TotpSecret([u8; SECRET_BYTES]);

impl TotpSecret {
    /// Creates a secret from the operating system's random numbers.
    pub fn random() -> TotpSecret {
        TotpSecret(rand::random())
    }

    /// The secret in base32, as people type it into an app.
    pub fn base32(&self) -> Secret {
        Secret::new(base32(&self.0))
    }

    /// Address that an app on the same device opens, or reads as a QR code. `issuer` names this
    /// server, and `account` the member.
    pub fn otpauth_url(&self, issuer: &str, account: &str) -> Secret {
        let escape = |text| utf8_percent_encode(text, ESCAPED);
        let (issuer, account, secret) = (escape(issuer), escape(account), base32(&self.0));
        let period = STEP_MS / 1000;
        Secret::new(format!(
            "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}\
             &algorithm=SHA1&digits={DIGITS}&period={period}"
        ))
    }

    /// Seals the secret for the database. Fails as [`Sealer::seal`].
    pub fn seal(&self, sealer: &Sealer, member: MemberId) -> Result<String, SealError> {
        sealer.seal(&purpose(member), &Secret::new(hex::encode(self.0)))
    }

    /// Opens a secret that was sealed for this member. Fails as [`Sealer::open`].
    pub fn open(sealer: &Sealer, member: MemberId, sealed: &[u8]) -> Result<TotpSecret, SealError> {
        let purpose = purpose(member);
        let damaged = || SealError::Damaged(purpose.clone());
        let text = sealer.open(&purpose, std::str::from_utf8(sealed).map_err(|_| damaged())?)?;
        let bytes = hex::decode(text.reveal()).map_err(|_| damaged())?;
        <[u8; SECRET_BYTES]>::try_from(bytes).map(TotpSecret).map_err(|_| damaged())
    }

    /// Returns the step of a code that is valid at `now` (ms since 1970): the present step, or the
    /// one before or after it, because clocks differ. `None` if the code is wrong. The caller must
    /// accept each step only once.
    pub fn step_of(&self, code: &str, now: i64) -> Option<i64> {
        let present = now.div_euclid(STEP_MS);
        [present, present - 1, present + 1].into_iter().find(|step| self.matches(*step, code))
    }

    /// Compares the code with that of the step, in constant time.
    fn matches(&self, step: i64, code: &str) -> bool {
        self.code_at(step).is_some_and(|right| bool::from(right.as_bytes().ct_eq(code.as_bytes())))
    }

    /// The code of a step (RFC 4226, section 5.3).
    fn code_at(&self, step: i64) -> Option<String> {
        let mut mac = Hmac::<Sha1>::new_from_slice(&self.0).ok()?;
        mac.update(&step.to_be_bytes());
        let hash: [u8; 20] = mac.finalize().into_bytes().into();
        let [.., last] = hash;
        let word = hash.get(usize::from(last & 0x0f)..)?.first_chunk::<4>()?;
        let number = (u32::from_be_bytes(*word) & 0x7fff_ffff) % CODES;
        Some(format!("{number:0DIGITS$}"))
    }
}

/// Purpose for which a member's secret is sealed.
fn purpose(member: MemberId) -> String {
    format!("totp {member}")
}

/// A new recovery code and its stored form.
pub struct RecoveryCode {
    /// The code in groups of letters, which is shown only once.
    pub code: Secret,
    /// SHA-256 of the code in hexadecimal, which is stored.
    pub sha256: String,
}

/// Creates the recovery codes of a member.
pub fn mint_recovery_codes() -> Vec<RecoveryCode> {
    let mint = || {
        let letters = base32(&rand::random::<[u8; RECOVERY_BYTES]>());
        let (mut code, sha256) = (String::new(), recovery_hash(&letters));
        for (at, letter) in letters.chars().enumerate() {
            if at > 0 && at.is_multiple_of(GROUP) {
                code.push('-');
            }
            code.push(letter);
        }
        RecoveryCode { code: Secret::new(code), sha256 }
    };
    std::iter::repeat_with(mint).take(RECOVERY_CODES).collect()
}

fn recovery_hash(letters: &str) -> String {
    hex::encode(Sha256::new_with_prefix("packhouse recovery code 1\0").chain_update(letters).finalize())
}

/// A code that a person entered, by its form.
pub enum EnteredCode {
    /// The digits of an authenticator app.
    App(String),
    /// The stored form of a recovery code: its SHA-256 in hexadecimal.
    Recovery(String),
}

impl EnteredCode {
    /// Reads a code. Spaces and hyphens do not count, and letters may be small. `None` for any
    /// other text, which is never a right code.
    pub fn read(text: &Secret) -> Option<EnteredCode> {
        let text = text.reveal();
        if text.len() > LONGEST {
            return None;
        }
        let counts = |letter: &char| !letter.is_whitespace() && *letter != '-';
        let letters: String = text.chars().filter(counts).map(|letter| letter.to_ascii_uppercase()).collect();
        let digits = letters.bytes().all(|byte| byte.is_ascii_digit());
        let of_recovery = letters.bytes().all(|byte| ALPHABET.contains(&byte));
        match letters.len() {
            DIGITS if digits => Some(EnteredCode::App(letters)),
            RECOVERY_LETTERS if of_recovery => Some(EnteredCode::Recovery(recovery_hash(&letters))),
            _ => None,
        }
    }
}

/// Base32 (RFC 4648) without padding, of bytes whose number is a multiple of five.
fn base32(bytes: &[u8]) -> String {
    let (mut text, mut buffer, mut bits) = (String::new(), 0_u32, 0_u32);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            let letter = ALPHABET.get(((buffer >> bits) & 31) as usize);
            text.extend(letter.map(|letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The secret of the test vectors of RFC 6238, appendix B.
    fn of_the_rfc() -> TotpSecret {
        TotpSecret(*b"12345678901234567890")
    }

    #[test]
    fn codes_match_the_test_vectors_of_the_rfc() {
        // The vectors have eight digits. A code of six digits is their end.
        for (seconds, vector) in [
            (59, "94287082"),
            (1_111_111_109, "07081804"),
            (1_111_111_111, "14050471"),
            (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"),
            (20_000_000_000, "65353130"),
        ] {
            let code = of_the_rfc().code_at(seconds / 30).unwrap();
            assert_eq!(code, vector[2..], "at {seconds} s");
            assert_eq!(of_the_rfc().step_of(&code, seconds * 1000), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_is_valid_one_step_earlier_and_later() {
        let (secret, step) = (of_the_rfc(), 1_234_567_890 / 30);
        let code = secret.code_at(step).unwrap();
        let begin = step * STEP_MS;
        for (now, valid) in [
            (begin - STEP_MS - 1, false),
            (begin - STEP_MS, true),
            (begin, true),
            (begin + STEP_MS, true),
            (begin + 2 * STEP_MS - 1, true),
            (begin + 2 * STEP_MS, false),
        ] {
            assert_eq!(secret.step_of(&code, now), valid.then_some(step), "{}", now - begin);
        }
        for wrong in ["", "00592", "0059244", "005924 ", "００５９２４"] {
            assert_eq!(secret.step_of(wrong, begin), None, "{wrong:?}");
        }
    }

    #[test]
    fn base32_matches_the_example_of_the_rfc() {
        assert_eq!(base32(b"foobarfoob"), "MZXW6YTBOJTG633C");
        assert_eq!(of_the_rfc().base32().reveal(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn the_address_names_server_and_member_without_ambiguity() {
        let url = of_the_rfc().otpauth_url("Packhouse (a.example)", "me+you@example.com");
        assert_eq!(
            url.reveal(),
            "otpauth://totp/Packhouse%20%28a.example%29:me%2Byou%40example.com\
             ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Packhouse%20%28a.example%29\
             &algorithm=SHA1&digits=6&period=30"
        );
    }

    #[test]
    fn a_sealed_secret_opens_only_for_its_member() {
        let sealer = Sealer::new(Some(Secret::new("an operator's own key")), Path::new("/nowhere"));
        let secret = TotpSecret::random();
        let sealed = secret.seal(&sealer, MemberId(7)).unwrap();
        assert!(!sealed.contains(&hex::encode(secret.0)));
        let opened = TotpSecret::open(&sealer, MemberId(7), sealed.as_bytes()).unwrap();
        assert_eq!(opened.0, secret.0);
        assert!(TotpSecret::open(&sealer, MemberId(8), sealed.as_bytes()).is_err());
        assert!(TotpSecret::open(&sealer, MemberId(7), &[0xff]).is_err());
    }

    #[test]
    fn a_recovery_code_is_read_however_it_is_typed() {
        let all = mint_recovery_codes();
        let hashes: BTreeSet<&str> = all.iter().map(|one| one.sha256.as_str()).collect();
        assert_eq!(hashes.len(), RECOVERY_CODES);
        for RecoveryCode { code, sha256 } in &all {
            let code = code.reveal();
            assert_eq!(code.len(), RECOVERY_LETTERS + 3, "{code}");
            let padded = format!(" {code}\n");
            for typed in [code.to_owned(), code.to_lowercase(), code.replace('-', " "), padded] {
                match EnteredCode::read(&Secret::new(typed)) {
                    Some(EnteredCode::Recovery(hash)) => assert_eq!(hash, *sha256),
                    _ => panic!("{code} was not read"),
                }
            }
        }
    }

    #[test]
    fn the_digits_of_an_app_may_be_in_groups() {
        for typed in ["123456", "123 456", "123-456", " 123456\n"] {
            let read = EnteredCode::read(&Secret::new(typed));
            assert!(matches!(&read, Some(EnteredCode::App(digits)) if digits == "123456"), "{typed:?}");
        }
        for other in ["", "12345", "1234567", "12345a", "AAAA-AAAA-AAAA-AAA1", "1 ".repeat(100).as_str()] {
            assert!(EnteredCode::read(&Secret::new(other)).is_none(), "{other:?}");
        }
    }
}
