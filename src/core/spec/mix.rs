//! Mixes: workloads with their weights.

use serde::{Deserialize, Serialize};

use super::invalid;
use crate::error::UserError;

/// As many scripts as pgbench takes (`MAX_SCRIPTS`).
pub(crate) const MAX_SCRIPTS: usize = 128;

/// A workload's share of a run's transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The workload's name.
    pub workload: String,
    /// Relative to the others' weights.
    pub weight: u32,
}

/// Takes a mix apart: names separated by commas, each with its weight behind an @, or 1
/// (`parseScriptWeight` in pgbench.c).
///
/// # Errors
/// 22023 for weights that are no whole numbers or all 0, and for too many workloads.
pub fn mix(text: &str) -> Result<Vec<Share>, UserError> {
    let mut shares = Vec::new();
    for part in text.split(',') {
        let (name, weight) = match part.split_once('@') {
            None => (part, 1),
            Some((name, weight)) => {
                let weight = weight.trim();
                let digits = !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit());
                let parsed = weight.parse::<u32>().ok().filter(|&w| digits && w <= i32::MAX as u32);
                let weight = parsed.ok_or_else(|| {
                    invalid(format!("invalid weight specification: \"{part}\""))
                        .hint("A weight is a whole number: 'pk_select@9,pk_update@1'.")
                })?;
                (name, weight)
            }
        };
        shares.push(Share { workload: name.trim().to_owned(), weight });
    }
    check_count(&shares)?;
    if shares.iter().all(|share| share.weight == 0) {
        return Err(invalid("total script weight must not be zero"));
    }
    Ok(shares)
}

fn check_count(shares: &[Share]) -> Result<(), UserError> {
    if shares.len() <= MAX_SCRIPTS {
        return Ok(());
    }
    Err(invalid(format!("at most {MAX_SCRIPTS} workloads are allowed in a mix, not {}", shares.len())))
}

/// A mix with each name that stands for a mix itself replaced by that one's workloads; its weight multiplies theirs.
///
/// # Errors
/// 22023 for too many workloads and for weights beyond those of a mix; those of `of_name`, which knows the mixes.
pub fn expand(
    mix: &[Share],
    mut of_name: impl FnMut(&str) -> Result<Option<Vec<Share>>, UserError>,
) -> Result<Vec<Share>, UserError> {
    let mut expanded = Vec::with_capacity(mix.len());
    for share in mix {
        let Some(inner) = of_name(&share.workload)? else {
            expanded.push(share.clone());
            continue;
        };
        for Share { workload, weight } in inner {
            let product = weight.checked_mul(share.weight).filter(|&weight| weight <= i32::MAX as u32);
            let weight = product.ok_or_else(|| {
                invalid(format!("weight {} of workload \"{}\" is too large", share.weight, share.workload))
                    .hint(format!(
                        "It multiplies the weights of the workloads that \"{}\" stands for.",
                        share.workload
                    ))
            })?;
            expanded.push(Share { workload, weight });
        }
    }
    check_count(&expanded)?;
    Ok(expanded)
}
