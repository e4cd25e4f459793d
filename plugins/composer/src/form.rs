//! Forms in the encoding of browsers and of PHP's `http_build_query`.

/// The fields of a form, decoded, in their order.
pub(crate) fn fields(body: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value)))
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, part.get(2..)) {
            (Some(byte), Some(rest)) => {
                bytes.push(byte);
                bytes.extend(rest.as_bytes());
            }
            _ => {
                bytes.push(b'%');
                bytes.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_decoded() {
        let read: Vec<(String, String)> = fields("packages%5B0%5D=acme%2Fdemo&x=a+b&y").collect();
        let expected = [("packages[0]", "acme/demo"), ("x", "a b")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "\\PC{0,60}") {
            let _ = fields(&text).count();
        }
    }
}
