//! What carries out the clients' statements.

use bench_base::error::{UserError, sqlstate};

use super::RunOptions;
use super::execution::Results;
use super::limits;
use super::values::words;
use crate::cluster::Nodes;

words! {
    /// What carries out the clients' statements.
    #[derive(Default)]
    pub enum Driver {
        /// Workers of the server, each of which is a client, inside the server.
        #[default]
        Engine = "engine",
        /// Workers that share the clients' connections to the server.
        Wire = "wire",
    }
}

words! {
    /// What a client does whose connection is lost.
    #[derive(Default)]
    pub enum OnDisconnect {
        /// It ends, as pgbench's does.
        #[default]
        End = "end",
        /// It connects again, and goes on with another transaction.
        Reconnect = "reconnect",
    }
}

/// Checks what depends on the driver.
///
/// # Errors
/// 22023 for options that the driver has not, 0A000 for what it does without, and 54000 for a target's name that is too long.
pub(super) fn check(options: &RunOptions) -> Result<(), UserError> {
    let RunOptions { driver, results, nodes, target, jobs, reconnect, on_disconnect, .. } = options;
    if let Some(target) = target {
        limits::check_text("target", target)?;
        if target.is_empty() {
            return Err(
                UserError::invalid("target must not be empty").hint("Use NULL for this server and database.")
            );
        }
    }
    if *driver == Driver::Engine {
        let given = [
            ("target", target.is_some()),
            ("jobs", jobs.is_some()),
            ("reconnect => true", *reconnect),
            ("on_disconnect => 'reconnect'", *on_disconnect == OnDisconnect::Reconnect),
        ];
        let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        return Err(UserError::invalid(format!("{name} requires driver => 'wire'")).hint(
            "With driver => 'engine', each client is a background worker of its own, without a connection.",
        ));
    }
    let refused = |what: String| {
        let message = format!("{what} is not supported with driver => 'wire'");
        UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
    };
    if *results != Results::Serialize {
        return Err(refused(format!("results => '{}'", results.as_str()))
            .hint("Over a connection, the server always sends the rows."));
    }
    if *nodes != Nodes::Local {
        return Err(refused(format!("nodes => '{}'", nodes.as_str())));
    }
    Ok(())
}
