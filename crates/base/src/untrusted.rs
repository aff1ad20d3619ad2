//! What others send: other servers, and users. Their texts come in any length and in any encoding, and are cut and cleaned before they
//! are logged, kept or shown. Where there is no memory for what they send, that is an error and not the end of the server.

use std::borrow::Cow;

use crate::error::{MAX_TEXT, UserError, sqlstate};

/// A text of others as it may be kept: at most [`MAX_TEXT`] bytes of it, with how much was cut at its end, and without what
/// no text of the server's may have. `left_out` is how many bytes more there were, which are not here.
pub fn text(bytes: &[u8], left_out: usize) -> String {
    let mut text = String::new();
    let mut taken = 0;
    'all: for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            // The server's texts end at a zero byte.
            let shown = if character == '\0' { char::REPLACEMENT_CHARACTER } else { character };
            if text.len() + shown.len_utf8() > MAX_TEXT {
                break 'all;
            }
            text.push(shown);
            taken += character.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            // The beginning of a character whose end is not here has been cut as well.
            if text.len() + 3 > MAX_TEXT || (left_out > 0 && taken + chunk.invalid().len() == bytes.len()) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            taken += chunk.invalid().len();
        }
    }
    match left_out + bytes.len() - taken {
        0 => text,
        cut => format!("{text} … ({cut} bytes cut)"),
    }
}

/// JSON of others without U+0000, which jsonb and text cannot hold: each `\u0000` becomes U+FFFD, and so does a zero byte.
pub fn without_zeros(json: String) -> String {
    const ESCAPED: &str = "\\u0000";
    if !json.contains(ESCAPED) && !json.contains('\0') {
        return json;
    }
    let mut clean = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find(['\\', '\0']) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if rest.starts_with(ESCAPED) {
            clean.push_str("\\ufffd");
            ESCAPED.len()
        } else if rest.starts_with('\0') {
            clean.push('\u{fffd}');
            1
        } else {
            // A backslash takes the character behind it along.
            let taken = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            clean.push_str(&rest[..taken]);
            taken
        };
        rest = &rest[taken..];
    }
    clean.push_str(rest);
    clean
}

/// The text with other words for the characters that are ours and that encodings of a byte per character lack: for
/// clients whose encoding cannot show them. Other characters stay, as those of a table's name.
pub fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '…' => plain.push_str("..."),
            '–' | '−' | '─' => plain.push('-'),
            '×' => plain.push('x'),
            '·' => plain.push('*'),
            '±' => plain.push_str("+-"),
            '²' => plain.push_str("^2"),
            'µ' => plain.push('u'),
            'λ' => plain.push_str("lambda"),
            'κ' => plain.push_str("kappa"),
            char::REPLACEMENT_CHARACTER => plain.push('?'),
            'σ' => plain.push_str("sigma"),
            // The eighths of a small plot.
            '▁'..='█' => plain.push(char::from(b"_.,-=+*#"[character as usize - '▁' as usize])),
            _ => plain.push(character),
        }
    }
    Cow::Owned(plain)
}

/// Makes room for `more` elements.
///
/// # Errors
/// 53200.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), UserError> {
    list.try_reserve(more).map_err(|_| out_of_memory(more.saturating_mul(size_of::<T>())))
}

/// Copies a text.
///
/// # Errors
/// 53200.
pub fn copied(text: &str) -> Result<Box<str>, UserError> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| out_of_memory(text.len()))?;
    copy.push_str(text);
    Ok(copy.into_boxed_str())
}

/// The server's own error.
fn out_of_memory(bytes: usize) -> UserError {
    UserError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
        .detail(format!("Failed on request of size {bytes}."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_say_so() {
        assert_eq!(text(b"short", 0), "short");
        assert_eq!(text(b"", 7), " … (7 bytes cut)");
        let long = "ä".repeat(MAX_TEXT);
        assert_eq!(text(long.as_bytes(), 0), format!("{} … (4096 bytes cut)", "ä".repeat(MAX_TEXT / 2)));
        let odd = format!("x{long}");
        assert_eq!(text(odd.as_bytes(), 1), format!("x{} … (4099 bytes cut)", "ä".repeat(MAX_TEXT / 2 - 1)));
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        assert_eq!(text(b"a\xff\0b\xc3", 0), "a\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn zeros_are_taken_out_of_json_and_nothing_else() {
        let clean = |json: &str| without_zeros(json.to_owned());
        assert_eq!(clean(r#"{"a": "x\u0000y"}"#), r#"{"a": "x\ufffdy"}"#);
        assert_eq!(clean(r#"["\\u0000", "\\\u0000", "\u00000"]"#), r#"["\\u0000", "\\\ufffd", "\ufffd0"]"#);
        assert_eq!(clean("\"\0ä\\\""), "\"\u{fffd}ä\\\"");
        assert_eq!(clean("\\"), "\\");
    }

    proptest! {
        #[test]
        fn json_stays_what_it_is(texts in proptest::collection::vec("(\\PC|\0|\\\\|u0000|\"){0,8}", 0..4)) {
            let json = serde_json::to_string(&texts).unwrap();
            let clean: Vec<String> = serde_json::from_str(&without_zeros(json)).unwrap();
            let expected: Vec<String> = texts.iter().map(|text| text.replace('\0', "\u{fffd}")).collect();
            prop_assert_eq!(clean, expected);
        }

        #[test]
        fn no_text_is_longer_than_it_may_be(bytes in proptest::collection::vec(any::<u8>(), 0..9000), left_out in 0_usize..9) {
            let text = text(&bytes, left_out);
            prop_assert!(text.len() <= MAX_TEXT + 40 && !text.contains('\0'));
        }
    }

    #[test]
    fn too_much_is_an_error() {
        let mut list: Vec<u64> = Vec::new();
        assert_eq!(reserve(&mut list, usize::MAX / 16).map_err(|e| e.sqlstate), Err("53200".to_owned()));
        assert_eq!(reserve(&mut list, 10), Ok(()));
        assert_eq!(copied("naïve").as_deref(), Ok("naïve"));
    }
}
