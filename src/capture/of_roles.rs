//! Captured statements, looked at and tried in sessions of the role that executed them.

use bench_core::captured::{CaptureOptions, Counts};
use bench_core::error::UserError;
use bench_core::spec::Role;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::feeders::{self, Replay};
use crate::launch::role_session::{answer, ask, kind};
use crate::server::background_worker::WorkerKind;
use crate::server::trust::statement::Judged;

/// The kind of worker that looks at statements.
const KIND: WorkerKind = kind(c"pgbench_ext_replays_main", c"pgbench_ext capture");

/// A statement as the role has executed it.
#[derive(Serialize, Deserialize)]
pub struct Asked {
    pub text: String,
    pub counts: Counts,
    /// Of the captured time.
    pub share: f64,
}

#[derive(Serialize, Deserialize)]
struct Question {
    statements: Vec<Asked>,
    /// Of the capture, as given.
    options: Value,
}

/// How statements of a role can be replayed, or the reasons why not, in their order.
///
/// # Errors
/// Those of a question to another session.
pub fn replays(
    role: &Role,
    statements: Vec<Asked>,
    options: &Value,
) -> Result<Vec<Result<Replay, String>>, UserError> {
    let question = Question { statements, options: options.clone() };
    ask(KIND, role, &question).map(|(replays, _)| replays)
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_replays_main(segment: pg_sys::Datum) {
    answer(segment, |question: Question| {
        let options = CaptureOptions::new(&question.options)?;
        let _judged = Judged::new()?;
        let replay = |asked: &Asked| {
            pgrx::check_for_interrupts!();
            feeders::replay(&asked.text, &asked.counts, asked.share, &options)
        };
        Ok((question.statements.iter().map(replay).collect::<Vec<_>>(), Vec::new()))
    });
}
