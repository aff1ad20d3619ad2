//! Options whose value is one of a few words.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

/// A type whose values users write as words, which are libpq's and are serialized as they are written.
pub trait Word: Copy + 'static {
    /// Each word and what it means.
    const WORDS: &'static [(&'static str, Self)];

    /// What a word means.
    ///
    /// # Errors
    /// 22023 for a text that is none of the words.
    fn parse(option: &str, value: &str) -> Result<Self, UserError> {
        let found = Self::WORDS.iter().find(|(word, _)| *word == value);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<String> = Self::WORDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            UserError::invalid(format!("invalid {option} value: \"{value}\""))
                .hint(format!("Valid values are: {}.", words.join(", ")))
        })
    }
}

/// How much of TLS there is, from nothing to a server whose name is proved (`sslmode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// Without TLS first, and with it if that fails.
    Allow,
    /// With TLS first, and without it if the server has none or that fails.
    #[default]
    Prefer,
    /// Only with TLS; the certificate is verified only where there is a root certificate, as for `VerifyCa`.
    Require,
    /// Only with TLS and a certificate that a root certificate vouches for.
    VerifyCa,
    /// And the certificate is that of the host.
    VerifyFull,
}

impl Word for SslMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];
}

/// How TLS begins (`sslnegotiation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslNegotiation {
    /// The server is asked by an SSLRequest.
    #[default]
    Postgres,
    /// The handshake comes first, with the protocol "postgresql" by ALPN: servers since PostgreSQL 17.
    Direct,
}

impl Word for SslNegotiation {
    const WORDS: &'static [(&'static str, Self)] = &[("postgres", Self::Postgres), ("direct", Self::Direct)];
}

/// A version of TLS that this driver speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "TLSv1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "TLSv1.3")]
    V1_3,
}

impl Word for TlsVersion {
    const WORDS: &'static [(&'static str, Self)] = &[("TLSv1.2", Self::V1_2), ("TLSv1.3", Self::V1_3)];
}

/// Whether SCRAM binds itself to the TLS connection (`channel_binding`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server can.
    #[default]
    Prefer,
    /// Always, and no other authentication is good enough.
    Require,
}

impl Word for ChannelBinding {
    const WORDS: &'static [(&'static str, Self)] =
        &[("disable", Self::Disable), ("prefer", Self::Prefer), ("require", Self::Require)];
}

/// Which host of several gets a connection (`load_balance_hosts`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalance {
    /// The first that answers, in the order in which they are given.
    #[default]
    Disable,
    /// The first that answers, in an order drawn for each connection.
    Random,
}

impl Word for LoadBalance {
    const WORDS: &'static [(&'static str, Self)] = &[("disable", Self::Disable), ("random", Self::Random)];
}

/// The word "0" or "1".
#[derive(Clone, Copy)]
pub struct Switch(pub bool);

impl Word for Switch {
    const WORDS: &'static [(&'static str, Self)] = &[("0", Self(false)), ("1", Self(true))];
}
