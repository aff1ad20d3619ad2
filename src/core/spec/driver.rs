//! What carries out the clients' statements.

use serde::{Deserialize, Serialize};

use super::options::word;
use super::{Results, invalid};
use crate::cluster::Nodes;
use crate::error::{UserError, sqlstate};

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

    /// The driver and its jobs.
    ///
    /// # Errors
    /// 22004, 22023, and 0A000 for what the driver over connections does without.
    pub(super) fn with_jobs(
        driver: Option<String>,
        jobs: Option<i32>,
        results: Results,
        nodes: Nodes,
    ) -> Result<(Driver, Option<u32>), UserError> {
        let is_wire = word("driver", driver, &["engine", "wire"], &["engine", "wire"])? == "wire";
        if !is_wire {
            return match jobs {
                None => Ok((Self::Engine, None)),
                Some(_) => Err(invalid("jobs requires driver => 'wire'")
                    .hint("With driver => 'engine', each client is a background worker of its own.")),
            };
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
        match jobs {
            Some(jobs) if jobs < 1 => Err(invalid(format!("jobs must be at least 1, not {jobs}"))),
            jobs => Ok((Self::Wire, jobs.map(i32::unsigned_abs))),
        }
    }
}
