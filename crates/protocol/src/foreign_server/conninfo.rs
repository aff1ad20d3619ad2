//! Connection strings of keywords and values, as libpq's conninfo_parse (fe-connect.c) reads them: `host=db1 password='a b'`.

use bench_base::error::UserError;

/// The keywords of a connection string with their values, in their order. Inside and outside of single quotes a backslash
/// takes the character after it for what it is.
///
/// # Errors
/// 22023 for a keyword without "=", and for a quoted string that does not end. No message has a value in it: one may be a
/// password.
pub fn parse_conninfo(text: &str) -> Result<Vec<(String, String)>, UserError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (keyword, after) = rest.split_at(end);
        let Some(after) = after.trim_start().strip_prefix('=') else {
            let message = format!("missing \"=\" after \"{keyword}\" in connection info string");
            return Err(UserError::invalid(message));
        };
        let (value, after) = value_of(after.trim_start())?;
        pairs.push((keyword.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// A value, and what comes after it.
fn value_of(text: &str) -> Result<(String, &str), UserError> {
    let quoted = text.strip_prefix('\'');
    let body = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = body.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return Ok((value, &body[place + 1..])),
            space if quoted.is_none() && space.is_ascii_whitespace() => return Ok((value, &body[place..])),
            other => value.push(other),
        }
    }
    match quoted {
        Some(_) => Err(UserError::invalid("unterminated quoted string in connection info string")),
        None => Ok((value, "")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse_conninfo;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse_conninfo(text).expect("a connection string")
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(keyword, value)| ((*keyword).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn words_and_quotes_are_read_as_libpq_reads_them() {
        assert_eq!(parsed(""), pairs(&[]));
        assert_eq!(parsed("sslmode=require"), pairs(&[("sslmode", "require")]));
        assert_eq!(parsed(" a = b  c='d e' "), pairs(&[("a", "b"), ("c", "d e")]));
        assert_eq!(parsed(r"password='it\'s' x=\ y"), pairs(&[("password", "it's"), ("x", " y")]));
        assert_eq!(parsed("a='' b="), pairs(&[("a", ""), ("b", "")]));
    }

    #[test]
    fn what_is_none_is_refused_without_a_value() {
        for (text, message) in [
            ("sslmode", "missing \"=\" after \"sslmode\""),
            ("a b=c", "missing \"=\" after \"a\""),
            ("password='secret", "unterminated quoted string"),
        ] {
            let error = parse_conninfo(text).expect_err(text);
            assert!(error.message.contains(message), "{}", error.message);
            assert!(!error.message.contains("secret"));
        }
    }

    proptest! {
        #[test]
        fn a_quoted_value_comes_back(value in "\\PC{0,20}") {
            let quoted = value.replace('\\', r"\\").replace('\'', r"\'");
            prop_assert_eq!(parsed(&format!("password='{quoted}'")), pairs(&[("password", &value)]));
        }
    }
}
