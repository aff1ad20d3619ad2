//! The workloads of a mix.

use std::collections::HashMap;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec;
use bench_model::spec::Share;

use crate::store;
use crate::store::Workload;

/// The workloads of a mix by their names, where there are such.
pub fn expanded(mix: &[Share]) -> Result<Vec<(Option<Workload>, Share)>, UserError> {
    let mut known: HashMap<String, Workload> = HashMap::new();
    let shares = spec::expand(mix, |name| match store::workload(name)? {
        Some(Workload { mix: Some(mix), .. }) => spec::mix(&mix).map(Some),
        Some(workload) => {
            known.insert(name.to_owned(), workload);
            Ok(None)
        }
        None => captured(name),
    })?;
    Ok(shares.into_iter().map(|share| (known.remove(&share.workload), share)).collect())
}

/// The workloads that a capture has kept; `None` for a name that is no capture's.
fn captured(name: &str) -> Result<Option<Vec<Share>>, UserError> {
    let captured = store::mix(name)?;
    if captured.as_ref().is_some_and(Vec::is_empty) {
        let message = format!("capture \"{name}\" has kept no statement");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("Column reason of bench.capture_statements says why."));
    }
    Ok(captured)
}
