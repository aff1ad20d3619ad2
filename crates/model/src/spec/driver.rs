//! What carries out the clients' statements.

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};

use super::execution::Results;
use super::limits;
use super::values::{required, word};
use crate::cluster::Nodes;

/// What carries out the clients' statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// Workers of the server, each of which is a client, inside the server.
    #[default]
    Engine,
    /// Workers that share the clients' connections to the server.
    Wire,
}

impl Driver {
    /// The word users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Wire => "wire",
        }
    }

    /// The driver by its word.
    ///
    /// # Errors
    /// 22004, 22023, and 0A000 for what the driver over connections does without.
    pub(super) fn parse(driver: Option<String>, results: Results, nodes: Nodes) -> Result<Driver, UserError> {
        if word("driver", driver, &["engine", "wire"], &["engine", "wire"])? == "engine" {
            return Ok(Self::Engine);
        }
        let refused = |what: String| {
            let message = format!("{what} is not supported with driver => 'wire'");
            UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        };
        if results != Results::Serialize {
            return Err(refused(format!("results => '{}'", results.as_str()))
                .hint("Over a connection, the server always sends the rows."));
        }
        if nodes != Nodes::Local {
            return Err(refused(format!("nodes => '{}'", nodes.as_str())));
        }
        Ok(Self::Wire)
    }
}

/// What a client does whose connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// It ends, as pgbench's does.
    #[default]
    End,
    /// It connects again, and goes on with another transaction.
    Reconnect,
}

impl OnDisconnect {
    /// The word users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Reconnect => "reconnect",
        }
    }
}

/// The options of [`Driver::Wire`], as [`super::RunOptions`] has them.
pub(super) struct Connecting {
    pub target: Option<String>,
    pub jobs: Option<u32>,
    pub reconnect: bool,
    pub on_disconnect: OnDisconnect,
}

impl Connecting {
    /// How connections are made, shared, and made again.
    ///
    /// # Errors
    /// 22004, 22023, and 54000 for a target's name that is too long.
    pub fn parse(
        driver: Driver,
        target: Option<String>,
        jobs: Option<i32>,
        reconnect: Option<bool>,
        on_disconnect: Option<String>,
    ) -> Result<Self, UserError> {
        let reconnect = required("reconnect", reconnect)?;
        let words = ["end", "reconnect"];
        let on_disconnect = match word("on_disconnect", on_disconnect, &words, &words)? {
            "reconnect" => OnDisconnect::Reconnect,
            _ => OnDisconnect::End,
        };
        if let Some(target) = &target {
            limits::check_text("target", target)?;
            if target.is_empty() {
                return Err(UserError::invalid("target must not be empty")
                    .hint("Use NULL for this server and database."));
            }
        }
        if let Some(jobs) = jobs.filter(|&jobs| jobs < 1) {
            return Err(UserError::invalid(format!("jobs must be at least 1, not {jobs}")));
        }
        if driver == Driver::Engine {
            let given = [
                ("target", target.is_some()),
                ("jobs", jobs.is_some()),
                ("reconnect => true", reconnect),
                ("on_disconnect => 'reconnect'", on_disconnect == OnDisconnect::Reconnect),
            ];
            if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                return Err(UserError::invalid(format!("{name} requires driver => 'wire'")).hint(
                    "With driver => 'engine', each client is a background worker of its own, without a connection.",
                ));
            }
        }
        Ok(Self { target, jobs: jobs.map(i32::unsigned_abs), reconnect, on_disconnect })
    }
}
