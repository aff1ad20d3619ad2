//! This node's part of another node's run.

use bench_base::error::UserError;
use bench_model::part::PartRequest;

use super::run::{prepare_part, start_prepared};
use crate::run::nodes::node_connectivity;
use crate::store;

/// Starts this node's part of another's run; its id.
///
/// # Errors
/// What kept it from going on so far that it has an id.
pub fn start(request: serde_json::Value) -> Result<i64, UserError> {
    let request: PartRequest = serde_json::from_value(request).map_err(|e| invalid(&e.to_string()))?;
    if !store::may_run()? {
        return Err(node_connectivity::may_not_run());
    }
    if request.spec.part_of.is_none() {
        return Err(invalid("part_of is missing"));
    }
    // With its id it can be asked why it has failed, and dropped.
    let (result, run_id) = start_prepared(&prepare_part(request)?)?;
    if run_id != 0 { Ok(run_id) } else { result.map(|()| run_id) }
}

fn invalid(message: &str) -> UserError {
    UserError::invalid(format!("invalid request for a part of a run: {message}"))
}
