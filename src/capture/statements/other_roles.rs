//! Captured statements, analysed and tried in sessions of the role that executed them.

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_capture::options::CaptureOptions;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capture::refusal::Refusal;
use crate::capture::sessions::{Replayer, Sessions};
use crate::capture::values;
use crate::capture::values::StatementReplay;
use crate::launch::role_session::{Watch, answer, ask_and_watch, count_answered, kind, read_only};
use crate::server::background_worker::WorkerKind;

/// The kind of worker that looks at statements.
const KIND: WorkerKind = kind(c"pgbench_ext_replays_main", c"pgbench_ext capture");

/// A statement as the role has executed it.
#[derive(Serialize, Deserialize)]
pub struct CapturedCall {
    pub text: String,
    pub counts: Counts,
    /// Of the captured time.
    pub share: f64,
}

#[derive(Serialize, Deserialize)]
struct ReplayRequest {
    statements: Vec<CapturedCall>,
    /// Of the capture, as given.
    options: Value,
}

/// How statements of a role can be replayed, or the reasons why not, in their order.
///
/// # Errors
/// Those of a question to another session.
pub fn replays(
    sessions: &Sessions,
    replayer: &Replayer,
    statements: Vec<CapturedCall>,
    options: &Value,
    watch: Watch,
) -> Result<Vec<Result<StatementReplay, Refusal>>, UserError> {
    let request = ReplayRequest { statements, options: options.clone() };
    ask_and_watch(KIND, &replayer.session, sessions.run_as(), &request, watch).map(|(replays, _)| replays)
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_replays_main(segment: pg_sys::Datum) {
    answer(segment, |request: ReplayRequest| {
        let options = CaptureOptions::new(&request.options)?;
        read_only()?;
        let replay = |asked: &CapturedCall| {
            pgrx::check_for_interrupts!();
            let replay = values::replay(&asked.text, &asked.counts, asked.share, &options);
            count_answered();
            replay
        };
        Ok((request.statements.iter().map(replay).collect::<Vec<_>>(), Vec::new()))
    });
}
