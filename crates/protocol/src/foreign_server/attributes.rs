//! What a session must be able to do (`target_session_attrs`), as libpq's PQconnectPoll decides it.

use serde::{Deserialize, Serialize};

use super::words::Word;

/// The sessions that are good enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionAttributes {
    /// All.
    #[default]
    Any,
    /// Those that may write: not a standby's, and not read-only by default.
    ReadWrite,
    /// Those that may not write.
    ReadOnly,
    /// Those of a server that is not in hot standby.
    Primary,
    /// Those of a server in hot standby.
    Standby,
    /// Those of a server in hot standby if there is one, else all.
    PreferStandby,
}

impl Word for SessionAttributes {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];
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
