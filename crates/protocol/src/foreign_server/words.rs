//! What texts mean: options whose value is one of a few words, a number or a version, and libpq's connection strings.

use bench_base::error::UserError;
use bench_base::words;
use bench_base::words::Word;

/// Returns the meaning of an option's word, by libpq's messages.
///
/// # Errors
/// 22023 for a text that is none of the words.
pub fn parse_word<T: Word>(option: &str, value: &str) -> Result<T, UserError> {
    T::from_word(value).ok_or_else(|| {
        let words: Vec<String> = T::words().map(|word| format!("\"{word}\"")).collect();
        UserError::invalid(format!("invalid {option} value: \"{value}\""))
            .hint(format!("Valid values are: {}.", words.join(", ")))
    })
}

words! {
    /// How much of TLS there is, from nothing to a server whose name is proved (`sslmode`).
    #[derive(Default)]
    pub enum SslMode {
        /// No TLS.
        Disable = "disable",
        /// Without TLS first, and with it if that fails.
        Allow = "allow",
        /// With TLS first, and without it if the server has none or that fails.
        #[default]
        Prefer = "prefer",
        /// Only with TLS; the certificate is verified only where there is a root certificate, as for `VerifyCa`.
        Require = "require",
        /// Only with TLS and a certificate that a root certificate vouches for.
        VerifyCa = "verify-ca",
        /// And the certificate is that of the host.
        VerifyFull = "verify-full",
    }
}

words! {
    /// How TLS begins (`sslnegotiation`).
    #[derive(Default)]
    pub enum SslNegotiation {
        /// The server is asked by an SSLRequest.
        #[default]
        Postgres = "postgres",
        /// The handshake comes first, with the protocol "postgresql" by ALPN: servers since PostgreSQL 17.
        Direct = "direct",
    }
}

words! {
    /// A version of TLS that this driver speaks.
    pub enum TlsVersion {
        /// TLS 1.2.
        V1_2 = "TLSv1.2",
        /// TLS 1.3.
        V1_3 = "TLSv1.3",
    }
}

words! {
    /// Whether SCRAM binds itself to the TLS connection (`channel_binding`).
    #[derive(Default)]
    pub enum ChannelBinding {
        /// Never.
        Disable = "disable",
        /// Where the server can.
        #[default]
        Prefer = "prefer",
        /// Always, and no other authentication is good enough.
        Require = "require",
    }
}

words! {
    /// Which host of several gets a connection (`load_balance_hosts`).
    #[derive(Default)]
    pub enum LoadBalance {
        /// The first that answers, in the order in which they are given.
        #[default]
        Disable = "disable",
        /// The first that answers, in an order drawn for each connection.
        Random = "random",
    }
}

/// The word "0" or "1".
#[derive(Clone, Copy)]
pub struct Switch(pub bool);

impl Word for Switch {
    const WORDS: &'static [(&'static str, Self)] = &[("0", Self(false)), ("1", Self(true))];
}

words! {
    /// The sessions that are good enough (`target_session_attrs`), as libpq's PQconnectPoll decides it.
    #[derive(Default)]
    pub enum SessionAttributes {
        /// All.
        #[default]
        Any = "any",
        /// Those that may write: not a standby's, and not read-only by default.
        ReadWrite = "read-write",
        /// Those that may not write.
        ReadOnly = "read-only",
        /// Those of a server that is not in hot standby.
        Primary = "primary",
        /// Those of a server in hot standby.
        Standby = "standby",
        /// Those of a server in hot standby if there is one, else all.
        PreferStandby = "prefer-standby",
    }
}

/// Whether a session is one of [`SessionAttributes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suitability {
    /// It is.
    Suitable,
    /// It is not; the reason is libpq's message.
    Unsuitable(&'static str),
    /// The server has not reported it (those before PostgreSQL 14, and poolers): [`SessionAttributes::by_answer`] decides
    /// by the value that this query returns.
    Ask(&'static str),
}

impl SessionAttributes {
    /// What is asked of the hosts, pass by pass: the next one begins where no host had a suitable session. Only
    /// `PreferStandby` has two.
    pub fn passes(self) -> &'static [Self] {
        match self {
            Self::Any => &[Self::Any],
            Self::ReadWrite => &[Self::ReadWrite],
            Self::ReadOnly => &[Self::ReadOnly],
            Self::Primary => &[Self::Primary],
            Self::Standby => &[Self::Standby],
            Self::PreferStandby => &[Self::Standby, Self::Any],
        }
    }

    /// Whether a session is suitable, by what the server reports of itself when a session begins. `PreferStandby` takes all:
    /// decide by its [`passes`](Self::passes).
    pub fn by_report(
        self,
        in_hot_standby: Option<&str>,
        default_transaction_read_only: Option<&str>,
    ) -> Suitability {
        let on = |value: &str| value == "on";
        let standby = in_hot_standby.map(on);
        match self {
            Self::Any | Self::PreferStandby => Suitability::Suitable,
            Self::ReadWrite | Self::ReadOnly => match (standby, default_transaction_read_only.map(on)) {
                (Some(standby), Some(read_only)) => self.decide(standby || read_only),
                _ => Suitability::Ask("SHOW transaction_read_only"),
            },
            Self::Primary | Self::Standby => match standby {
                Some(standby) => self.decide(standby),
                None => Suitability::Ask("SELECT pg_catalog.pg_is_in_recovery()"),
            },
        }
    }

    /// Whether a session is suitable, by the value that the query of [`Suitability::Ask`] has returned.
    pub fn by_answer(self, value: &str) -> Suitability {
        self.decide(matches!(value, "on" | "t"))
    }

    /// By whether the session is read-only or the server in hot standby, whichever of the two is meant.
    fn decide(self, is_so: bool) -> Suitability {
        match (self, is_so) {
            (Self::ReadWrite, true) => Suitability::Unsuitable("session is read-only"),
            (Self::ReadOnly, false) => Suitability::Unsuitable("session is not read-only"),
            (Self::Primary, true) => Suitability::Unsuitable("server is in hot standby mode"),
            (Self::Standby, false) => Suitability::Unsuitable("server is not in hot standby mode"),
            _ => Suitability::Suitable,
        }
    }
}

/// Options as a catalog has them.
#[derive(Clone, Copy)]
pub struct CatalogOptions<'a>(pub &'a [(String, String)]);

impl<'a> CatalogOptions<'a> {
    /// The value of an option. An empty one is none, as for libpq.
    pub fn text(self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().find(|(option, _)| option == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The value of an option of a few words, and the default where it is not given.
    pub fn word<T: Word + Default>(self, name: &str) -> Result<T, UserError> {
        self.text(name).map_or_else(|| Ok(T::default()), |value| parse_word(name, value))
    }

    /// The value of an option whose values are numbers above zero; zero and negative ones are none, as for libpq.
    pub fn positive(self, name: &str) -> Result<Option<u32>, UserError> {
        let value = self.text(name).map(|value| integer(name, value)).transpose()?;
        Ok(value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0))
    }
}

/// A number as libpq's pqParseIntParam takes it.
pub fn integer(name: &str, value: &str) -> Result<i32, UserError> {
    value.trim().parse().map_err(|_| {
        UserError::invalid(format!("invalid integer value \"{value}\" for connection option \"{name}\""))
    })
}

/// A truth value as defGetBoolean takes it.
pub fn boolean(name: &str, value: &str) -> Result<bool, UserError> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(UserError::invalid(format!("{name} requires a Boolean value"))),
    }
}

/// The oldest version of TLS that is good enough; there is none below 1.2 here.
pub fn min_version(name: &str, value: &str) -> Result<Option<TlsVersion>, UserError> {
    match known_version(name, value)? {
        Some(("TLSv1" | "TLSv1.1", _)) => Ok(Some(TlsVersion::V1_2)),
        version => Ok(version.and_then(|(_, version)| version)),
    }
}

/// The newest version of TLS that is good enough.
pub fn max_version(name: &str, value: &str) -> Result<Option<TlsVersion>, UserError> {
    match known_version(name, value)? {
        None => Ok(None),
        Some((_, Some(version))) => Ok(Some(version)),
        Some((word, None)) => Err(UserError::invalid(format!("{name} value \"{word}\" is not supported"))
            .detail("TLS before version 1.2 is not supported.")
            .hint("Use \"TLSv1.2\" or \"TLSv1.3\".")),
    }
}

/// A version by libpq's words, in any case; an empty one is none.
fn known_version(name: &str, value: &str) -> Result<Option<(&'static str, Option<TlsVersion>)>, UserError> {
    const KNOWN: [(&str, Option<TlsVersion>); 4] = [
        ("TLSv1", None),
        ("TLSv1.1", None),
        ("TLSv1.2", Some(TlsVersion::V1_2)),
        ("TLSv1.3", Some(TlsVersion::V1_3)),
    ];
    if value.is_empty() {
        return Ok(None);
    }
    match KNOWN.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(value)) {
        Some(known) => Ok(Some(known)),
        None => Err(UserError::invalid(format!("invalid {name} value: \"{value}\""))
            .hint("Valid values are: \"TLSv1\", \"TLSv1.1\", \"TLSv1.2\", \"TLSv1.3\".")),
    }
}

// Connection strings of keywords and values, as libpq's conninfo_parse (fe-connect.c) reads them: `host=db1 password='a b'`.

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

    use super::*;

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
