//! Replacement of secrets in bytes, in every form that a client or a plugin may write. A secret may
//! be plain, in hexadecimal, or within base64 of a longer text. It may also contain the escapes of
//! JSON, URLs and forms.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// A shorter secret may occur within other words, so it is replaced only as a separate word.
pub(super) const SHORTEST: usize = 6;

/// Decoder that also accepts input from the middle of base64, whose last digit may hold bits beyond
/// the last whole byte.
static BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// A secret and the word that replaces it. Both have the same length.
struct Replacement {
    secret: Vec<u8>,
    word: Vec<u8>,
}

/// The secrets of a recording with their words.
pub(super) struct Replacements {
    plain: Vec<Replacement>,
    hex: Vec<Replacement>,
    shortest: usize,
}

impl Replacements {
    /// Creates replacements from pairs of a secret and its word, the longest first.
    pub(super) fn new(secrets: Vec<(Vec<u8>, Vec<u8>)>) -> Replacements {
        let plain: Vec<_> = secrets.into_iter().map(|(secret, word)| Replacement { secret, word }).collect();
        let hex = plain.iter().filter(|one| !one.is_short()).flat_map(Replacement::in_hex).collect();
        let shortest = plain.iter().map(|one| one.secret.len()).min().unwrap_or(usize::MAX);
        Replacements { plain, hex, shortest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }

    /// Returns the bytes with a word in place of each secret, or `None` if they contain no secret.
    pub(super) fn apply(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut changed = self.unescaped(bytes);
        for escapes in [Escapes::Json, Escapes::Percent, Escapes::Form] {
            changed = self.escaped(changed.as_deref().unwrap_or(bytes), escapes).or(changed);
        }
        changed
    }

    fn unescaped(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut text = bytes.to_vec();
        let mut is_changed = false;
        for one in self.plain.iter().chain(&self.hex) {
            is_changed |= one.replace_in(&mut text);
        }
        is_changed |= self.replace_in_base64(&mut text);
        is_changed.then_some(text)
    }

    /// Replaces secrets in escaped text. The words need no escapes, so a plugin that escapes a word
    /// writes the same bytes.
    fn escaped(&self, text: &[u8], escapes: Escapes) -> Option<Vec<u8>> {
        if !escapes.occur_in(text) {
            return None;
        }
        let changed = self.unescaped(&escapes.decoded(text))?;
        let mut written = Vec::with_capacity(text.len());
        let mut at = 0;
        for (piece, meaning) in escapes.pieces(text) {
            let end = at + meaning.len();
            let now = changed.get(at..end).unwrap_or_default();
            written.extend_from_slice(if *now == *meaning { piece } else { now });
            at = end;
        }
        Some(written)
    }

    /// Replaces secrets in base64. Only the digits of a secret change, so both alphabets and any
    /// padding stay as they are.
    fn replace_in_base64(&self, text: &mut [u8]) -> bool {
        let mut is_changed = false;
        let runs = text.split_mut(|byte| !is_base64(*byte));
        for run in runs.filter(|run| run.len() * 3 / 4 >= self.shortest) {
            for start in 0..4 {
                let Some(digits) = run.get_mut(start..) else { break };
                let Some(decoded) = decode(digits) else { continue };
                let Some(changed) = self.decoded(&decoded) else { continue };
                let (before, after) = (BASE64.encode(&decoded), BASE64.encode(&changed));
                for (digit, (before, after)) in digits.iter_mut().zip(before.bytes().zip(after.bytes())) {
                    if before != after {
                        *digit = after;
                    }
                }
                is_changed = true;
            }
        }
        is_changed
    }

    /// Replaces secrets in decoded base64. A short secret can occur by chance in any decoded bytes,
    /// so this function replaces it only if they are text.
    fn decoded(&self, decoded: &[u8]) -> Option<Vec<u8>> {
        let takes_short = self.shortest < SHORTEST && is_text(decoded);
        let mut changed = decoded.to_vec();
        let mut is_changed = false;
        for one in self.plain.iter().filter(|one| takes_short || !one.is_short()) {
            is_changed |= one.replace_in(&mut changed);
        }
        is_changed.then_some(changed)
    }
}

impl Replacement {
    fn is_short(&self) -> bool {
        self.secret.len() < SHORTEST
    }

    fn in_hex(&self) -> [Replacement; 2] {
        let (secret, word) = (hex(&self.secret), hex(&self.word));
        let upper = |text: &str| text.to_ascii_uppercase().into_bytes();
        [
            Replacement { secret: upper(&secret), word: upper(&word) },
            Replacement { secret: secret.into_bytes(), word: word.into_bytes() },
        ]
    }

    /// Replaces each occurrence. Returns true if it replaced any.
    fn replace_in(&self, text: &mut [u8]) -> bool {
        let mut is_changed = false;
        let mut from = 0;
        while let Some(at) = find(text, &self.secret, from) {
            let end = at + self.secret.len();
            from = end;
            if self.is_short() && !stands_alone(text, at, end) {
                continue;
            }
            if let Some(occurrence) = text.get_mut(at..end) {
                occurrence.copy_from_slice(&self.word);
                is_changed = true;
            }
        }
        is_changed
    }
}

/// Returns the next position of `needle`, starting at `from`.
pub(super) fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let within = bytes.get(from..)?;
    memchr::memmem::find(within, needle).map(|at| at + from)
}

fn stands_alone(text: &[u8], at: usize, end: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    ![before, text.get(end)].into_iter().flatten().any(u8::is_ascii_alphanumeric)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes each run of base64 digits in these bytes. A run may begin with digits of other text, so
/// it is decoded from each of the four positions in a group of digits.
pub(super) fn decodings(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let runs = bytes.split(|byte| !is_base64(*byte));
    runs.flat_map(|run| (0..4).filter_map(move |start| run.get(start..)).filter_map(decode))
}

/// Decodes base64 in either alphabet, with or without padding.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    decode(text.trim().trim_end_matches('=').as_bytes())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// Decodes digits in either alphabet. A single digit at the end does not encode a byte.
fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let whole = digits.len() - usize::from(digits.len() % 4 == 1);
    let standard = |digit: &u8| match digit {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    };
    BASE64.decode(digits.iter().take(whole).map(standard).collect::<Vec<u8>>()).ok()
}

fn is_text(bytes: &[u8]) -> bool {
    let is_odd = |letter: char| letter.is_control() && !letter.is_whitespace();
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_odd))
}

/// Escapes that write characters as other characters.
#[derive(Clone, Copy)]
pub(super) enum Escapes {
    /// Escapes in a string of JSON: `\"`, `\u00e9`.
    Json,
    Percent,
    /// Escapes in a form, where `+` is also a space.
    Form,
}

impl Escapes {
    fn occur_in(self, text: &[u8]) -> bool {
        let mark = match self {
            Escapes::Json => b'\\',
            Escapes::Percent => b'%',
            Escapes::Form => b'+',
        };
        text.contains(&mark)
    }

    /// Returns the decoded bytes of a text. A mark that begins no escape is literal.
    pub(super) fn decoded(self, text: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(text.len());
        self.pieces(text).for_each(|(_, meaning)| decoded.extend_from_slice(&meaning));
        decoded
    }

    /// Splits a text into escapes and other bytes, each with the bytes that it encodes.
    pub(super) fn pieces(self, text: &[u8]) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let escape = self.escape(rest);
            let length = escape.as_ref().map_or(1, |(length, _)| *length);
            let (piece, after) = rest.split_at_checked(length)?;
            rest = after;
            Some((piece, escape.map_or(Cow::Borrowed(piece), |(_, meaning)| Cow::Owned(meaning))))
        })
    }

    /// Returns the escape at the start of a text: its length, and the bytes that it encodes.
    fn escape(self, text: &[u8]) -> Option<(usize, Vec<u8>)> {
        match (self, text) {
            (Escapes::Json, [b'\\', ..]) => json_escape(text),
            (Escapes::Form, [b'+', ..]) => Some((1, vec![b' '])),
            (Escapes::Percent | Escapes::Form, [b'%', high, low, ..]) => {
                let digit = |digit: u8| char::from(digit).to_digit(16);
                let byte = digit(*high)? * 16 + digit(*low)?;
                Some((3, vec![u8::try_from(byte).ok()?]))
            }
            _ => None,
        }
    }
}

/// Returns the JSON escape at the start of a text. It tries the possible lengths: a surrogate pair,
/// a code, a letter.
fn json_escape(text: &[u8]) -> Option<(usize, Vec<u8>)> {
    [12, 6, 2].into_iter().find_map(|length| {
        let escape = std::str::from_utf8(text.get(..length)?).ok()?;
        let decoded: String = serde_json::from_str(&format!("\"{escape}\"")).ok()?;
        (decoded.chars().count() == 1).then(|| (length, decoded.into_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    const SECRET: &str = "corre\"ct horse/ü+%1🔑";
    const WORD: &str = "hidden-0-xxxxxxxxxxxxxxx";

    type Form = dyn Fn(&str) -> String;

    fn applied(secrets: &[(&str, &str)], text: &str) -> Option<String> {
        let pairs =
            secrets.iter().map(|(secret, word)| (secret.as_bytes().to_vec(), word.as_bytes().to_vec()));
        let changed = Replacements::new(pairs.collect()).apply(text.as_bytes());
        changed.map(|changed| String::from_utf8(changed).unwrap())
    }

    fn percent(text: &str) -> String {
        let one = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(one).collect()
    }

    #[test]
    fn a_secret_is_replaced_in_every_form() {
        assert_eq!(SECRET.len(), WORD.len());
        let upper = |text: &str| hex(text.as_bytes()).to_uppercase();
        let forms: [(&str, &Form); 17] = [
            ("plain", &|text| format!("a {text} b {text}")),
            ("JSON", &|text| serde_json::json!({"password": text}).to_string()),
            ("JSON with codes", &|text| {
                let codes = [("\"", "\\u0022"), ("/", "\\/"), ("ü", "\\u00fc"), ("🔑", "\\ud83d\\udd11")];
                let text =
                    codes.iter().fold(text.to_owned(), |text, (plain, code)| text.replace(plain, code));
                format!("{{\"a\": \"\\n{text}\\\\\"}}")
            }),
            ("address", &|text| format!("https://u:{}@host/a%20b", percent(text))),
            ("address in lower case", &|text| percent(text).to_lowercase()),
            ("form", &|text| format!("a=b+c&password={}", percent(text).replace("%20", "+"))),
            ("hexadecimal", &|text| hex(text.as_bytes())),
            ("upper-case hexadecimal", &upper),
            ("base64", &|text| STANDARD.encode(text)),
            ("base64 behind one byte", &|text| STANDARD.encode(format!(":{text}"))),
            ("base64 behind two bytes", &|text| STANDARD.encode(format!("u:{text}:"))),
            ("base64 of a pair", &|text| format!("Basic {}", STANDARD.encode(format!("user:{text}")))),
            ("base64 for addresses", &|text| URL_SAFE_NO_PAD.encode(format!("ÿÿ>?:{text}~~~"))),
            ("base64 in a path", &|text| format!("/token/{}/x", STANDARD.encode(format!("me:{text}")))),
            ("base64 in an address", &|text| percent(&STANDARD.encode(format!("ÿ~?{text}")))),
            ("base64 in JSON", &|text| {
                format!("{{\"auth\":\"{}\"}}", STANDARD.encode(format!("ÿ~?{text}")).replace('/', "\\/"))
            }),
            ("base64 of a pair twice", &|text| {
                let pair = STANDARD.encode(format!("user:{text}"));
                format!("{pair},{pair}")
            }),
        ];
        for (name, form) in forms {
            assert_eq!(applied(&[(SECRET, WORD)], &form(SECRET)), Some(form(WORD)), "{name}");
            assert_eq!(applied(&[(SECRET, WORD)], &form("another, longer secret")), None, "{name}");
        }
    }

    #[test]
    fn a_short_secret_is_replaced_where_it_stands_alone() {
        let pair = |password: &str| STANDARD.encode(format!("me:{password}"));
        for (text, expected) in [
            ("password=abc&x=1", Some("password=hid&x=1".to_owned())),
            ("https://me:abc@host/abc/abcd/xabc", Some("https://me:hid@host/hid/abcd/xabc".to_owned())),
            ("abcabc abc", Some("abcabc hid".to_owned())),
            (&format!("Basic {}", pair("abc")), Some(format!("Basic {}", pair("hid")))),
            (&pair("abcd"), None),
            ("abcdefgh", None),
            ("616263", None),
        ] {
            assert_eq!(applied(&[("abc", "hid")], text), expected, "{text}");
        }
    }

    #[test]
    fn text_without_escapes_is_literal() {
        for (escapes, text) in
            [(Escapes::Json, "\\x \\"), (Escapes::Json, "\\u12"), (Escapes::Percent, "%zz %4 %")]
        {
            assert_eq!(escapes.decoded(text.as_bytes()), text.as_bytes(), "{text}");
        }
        assert_eq!(Escapes::Json.decoded(br#"\ud83d\udd11\n\"a\u0041"#), "🔑\n\"aA".as_bytes());
        assert_eq!(Escapes::Percent.decoded(b"a+%2b%C3%BC"), "a++ü".as_bytes());
        assert_eq!(Escapes::Form.decoded(b"a+%2b"), b"a +");
    }
}
