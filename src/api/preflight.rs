//! bench.preflight: what would spoil a run now.

use pgrx::prelude::*;
use serde_json::json;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::runs::run_of;
use crate::error::{OrRaise, for_client};
use crate::run::prepare::start::look;
use crate::server::rows::{Rows, rows};

run_function! {
    /// Says what would spoil a run that started now. See the COMMENT ON.
    bench_preflight(workload: [Option<String>], clients: [Option<i32>]) -> [Rows] = |workload, clients, run| {
        let risks = look(run_of(workload, clients, run)).or_raise();
        rows(risks.into_iter().map(|risk| {
            json!({
                "topic": risk.topic.as_str(),
                "severity": risk.severity,
                "finding": for_client(risk.finding),
                "advice": for_client(risk.advice),
            })
        }))
    }
}
