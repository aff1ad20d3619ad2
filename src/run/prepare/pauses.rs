//! Captured pauses in comparisons, which leave them out: they would dilute every difference in the server's work.

use bench_base::error::UserError;
use bench_capture::log::ScriptPauses;
use bench_model::spec::{RunArguments, THINK, mix};
use serde_json::{Value, json};

use super::workload::resolve;
use crate::error::notice;
use crate::store;

/// Leaves out the captured pauses of a comparison by setting variable [`THINK`], with a NOTICE, unless the run or one of the
/// sides sets it.
///
/// # Errors
/// The server's.
pub fn leave_out(run: RunArguments, sides: &[&Value]) -> Result<RunArguments, UserError> {
    let Some(Value::Object(mut variables)) = run.variables.clone() else { return Ok(run) };
    let sides_variables = sides.iter().filter_map(|side| side.get("variables")?.as_object());
    if sides_variables.chain([&variables]).any(|variables| variables.contains_key(THINK)) {
        return Ok(run);
    }
    let sides_workloads = sides.iter().filter_map(|side| side.get("workload")?.as_str());
    let mut pause_ms: f64 = 0.0;
    for workload in run.workload.as_deref().into_iter().chain(sides_workloads) {
        pause_ms = pause_ms.max(mean_pause_ms(workload)?);
    }
    if pause_ms == 0.0 {
        return Ok(run);
    }
    notice(
        format!(
            "the captured pauses, {pause_ms:.1} ms per transaction, are left out: a comparison measures the server's work"
        ),
        format!("To keep them, pass variables => '{{\"{THINK}\": 1}}'."),
    );
    variables.insert(THINK.to_owned(), json!(0));
    Ok(RunArguments { variables: Some(Value::Object(variables)), ..run })
}

/// Returns the mean captured pause in a transaction of a mix, in milliseconds; 0 for an invalid mix.
fn mean_pause_ms(workload: &str) -> Result<f64, UserError> {
    let Ok(scripts) = mix(workload).and_then(|mix| resolve(&mix)) else { return Ok(0.0) };
    let (mut pause_us, mut weights) = (0.0, 0.0);
    for (workload, share) in scripts {
        let weight = f64::from(share.weight);
        weights += weight;
        if workload.captured {
            let ScriptPauses { constant_us, variables } = ScriptPauses::of(&workload.script);
            let mean_us = store::mean_of_captured(&workload.name, variables)?;
            pause_us += weight * (constant_us as f64 + mean_us);
        }
    }
    Ok(if weights > 0.0 { pause_us / weights / 1e3 } else { 0.0 })
}
