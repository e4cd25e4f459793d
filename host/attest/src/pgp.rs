//! OpenPGP signatures. The server does not verify them, because no setting says which key belongs
//! to which person. It reads only the key's id, to display it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::facts::StatementFacts;
use crate::{Judgement, Verdict};

/// Tag of a signature packet.
const SIGNATURE: u8 = 2;
/// Types of the subpackets that identify the key: one contains its id, the other its fingerprint.
const ISSUER: u8 = 16;
const ISSUER_FINGERPRINT: u8 = 33;

/// Reads the key's id. The verdict is always `Unverifiable`.
pub(crate) fn judge(bytes: &[u8]) -> Judgement {
    let key = key_of(bytes).map_or_else(String::new, |key| format!("OpenPGP {key}"));
    let reason = "It is stored unchanged; this server does not verify OpenPGP signatures.";
    Judgement::of(Verdict::Unverifiable, reason, StatementFacts { key, ..StatementFacts::default() })
}

/// Returns the fingerprint of the key in upper-case hex, or its id if the signature contains no
/// fingerprint.
fn key_of(bytes: &[u8]) -> Option<String> {
    let packet = dearmored(bytes)?;
    let body = signature(&packet)?;
    let (version, rest) = body.split_first()?;
    if *version != 4 {
        return None;
    }
    // These three bytes are the signature type, the key algorithm and the hash algorithm. The
    // hashed subpackets and the unhashed subpackets come next.
    let (hashed, rest) = area(rest.get(3..)?)?;
    let (unhashed, _) = area(rest)?;
    let found = |kind: u8| subpacket(hashed, kind).or_else(|| subpacket(unhashed, kind));
    let fingerprint = found(ISSUER_FINGERPRINT).and_then(|value| value.get(1..));
    fingerprint.or_else(|| found(ISSUER)).map(hex::encode_upper)
}

fn dearmored(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PGP SIGNATURE-----")?;
    let (body, _) = rest.split_once("-----END PGP SIGNATURE-----")?;
    let lines = body.lines().map(str::trim);
    // An empty line ends the headers. The line with the checksum begins with `=`.
    let mut lines = lines.skip(1).skip_while(|line| !line.is_empty()).peekable();
    let data: String = lines.by_ref().filter(|line| !line.starts_with('=')).collect();
    STANDARD.decode(data).ok()
}

/// Returns the body of the first packet, or `None` if the packet is not a signature.
fn signature(packet: &[u8]) -> Option<&[u8]> {
    let (&head, rest) = packet.split_first()?;
    if head & 0x80 == 0 {
        return None;
    }
    let (tag, length, rest) = if head & 0x40 == 0 {
        let (length, rest) = match head & 3 {
            0 => (usize::from(*rest.first()?), rest.get(1..)?),
            1 => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), rest.get(2..)?),
            _ => return None,
        };
        ((head >> 2) & 0xf, length, rest)
    } else {
        let (length, rest) = length(rest)?;
        (head & 0x3f, length, rest)
    };
    (tag == SIGNATURE).then(|| rest.get(..length)).flatten()
}

/// Parses a length that is encoded in one, two or five bytes. Returns the length and the remaining
/// bytes.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        0..192 => Some((usize::from(first), rest)),
        192..255 => {
            let (&second, rest) = rest.split_first()?;
            Some(((usize::from(first) - 192) * 256 + usize::from(second) + 192, rest))
        }
        255 => {
            let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
            Some((usize::try_from(length).ok()?, rest.get(4..)?))
        }
    }
}

/// Splits off a subpacket area, which begins with its length in two bytes. Returns the area and the
/// remaining bytes.
fn area(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_be_bytes(bytes.get(..2)?.try_into().ok()?));
    bytes.get(2..)?.split_at_checked(length)
}

fn subpacket(mut area: &[u8], kind: u8) -> Option<&[u8]> {
    while !area.is_empty() {
        let (length, rest) = length(area)?;
        let (one, behind) = rest.split_at_checked(length)?;
        let (head, value) = one.split_first()?;
        // The highest bit marks a critical subpacket; the other bits are the type.
        if head & 0x7f == kind {
            return Some(value);
        }
        area = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    fn armored(bytes: &[u8]) -> String {
        let data = STANDARD.encode(bytes);
        format!("-----BEGIN PGP SIGNATURE-----\nComment: one\n\n{data}\n=abcd\n-----END PGP SIGNATURE-----\n")
    }

    /// Returns a version 4 signature with these hashed and unhashed subpackets.
    fn packet(hashed: &[u8], unhashed: &[u8]) -> Vec<u8> {
        let mut body = vec![4, 0, 22, 8];
        for area in [hashed, unhashed] {
            body.extend(u16::try_from(area.len()).unwrap().to_be_bytes());
            body.extend(area);
        }
        body.extend([0, 0]);
        let mut packet = vec![0x88, u8::try_from(body.len()).unwrap()];
        packet.extend(body);
        packet
    }

    #[test]
    fn the_key_is_read_and_nothing_is_verified() {
        let fingerprint = [[22, 33, 4].as_slice(), &[0xab; 20]].concat();
        let number = [[9, 16].as_slice(), &[0xcd; 8]].concat();
        let time = [5, 2, 0, 0, 0, 0];
        let judged = judge(armored(&packet(&[&time, fingerprint.as_slice()].concat(), &number)).as_bytes());
        assert_eq!(
            (judged.verdict, judged.facts.key),
            (Verdict::Unverifiable, format!("OpenPGP {}", "AB".repeat(20)))
        );
        let judged = judge(armored(&packet(&time, &number)).as_bytes());
        assert_eq!(judged.facts.key, format!("OpenPGP {}", "CD".repeat(8)));
    }

    #[test]
    fn a_damaged_signature_names_no_key() {
        let whole = packet(&[5, 2, 0, 0, 0, 0], &[9, 16, 1, 1, 1, 1, 1, 1, 1, 1]);
        for cut in 0..whole.len() - 2 {
            assert_eq!(judge(armored(&whole[..cut]).as_bytes()).facts.key, "", "{cut}");
        }
        for wrong in ["", "-----BEGIN PGP SIGNATURE-----\n\n?\n-----END PGP SIGNATURE-----"] {
            assert_eq!(judge(wrong.as_bytes()).facts.key, "");
        }
    }
}
