//! Mixes: workloads with their weights.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

/// As many scripts as pgbench takes (`MAX_SCRIPTS`).
pub(crate) const MAX_SCRIPTS: usize = 128;

/// A workload's share of a run's transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The workload's name.
    pub workload: String,
    /// Relative to the others' weights; in a deck, how many cards are this one's.
    pub weight: u32,
    /// Whether the mix is a deck of cards, which each client shuffles and deals: shares are exact after each deck.
    #[serde(default)]
    pub is_dealt: bool,
}

/// What a mix begins with that is a deck of cards.
const DECK: &str = "deck:";

/// Whether a mix could name a workload, or a capture, like this.
pub fn is_name(name: &str, max_bytes: usize) -> bool {
    (1..=max_bytes).contains(&name.len()) && !name.contains(['@', ',']) && !name.starts_with(DECK)
}

/// The most cards of a deck: each client has one.
const MAX_CARDS: u64 = 10_000;

/// Takes a mix apart: names separated by commas, each with its weight behind an @, or 1 (`parseScriptWeight` in
/// pgbench.c); with `deck:` before them, weights are numbers of cards.
///
/// # Errors
/// 22023 for weights that are no whole numbers or all 0, and for too many workloads.
pub fn mix(text: &str) -> Result<Vec<Share>, UserError> {
    let (is_dealt, text) = text.trim_start().strip_prefix(DECK).map_or((false, text), |cards| (true, cards));
    let mut shares = Vec::new();
    for part in text.split(',') {
        let (name, weight) = match part.split_once('@') {
            None => (part, 1),
            Some((name, weight)) => {
                let weight = weight.trim();
                let digits = !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit());
                let parsed = weight.parse::<u32>().ok().filter(|&w| digits && w <= i32::MAX as u32);
                let weight = parsed.ok_or_else(|| {
                    UserError::invalid(format!("invalid weight specification: \"{part}\""))
                        .hint("A weight is a whole number: 'pk_select@9,pk_update@1'.")
                })?;
                (name, weight)
            }
        };
        shares.push(Share { workload: name.trim().to_owned(), weight, is_dealt });
    }
    check_count(&shares)?;
    if shares.iter().all(|share| share.weight == 0) {
        return Err(UserError::invalid("total script weight must not be zero"));
    }
    Ok(shares)
}

fn check_count(shares: &[Share]) -> Result<(), UserError> {
    if shares.len() <= MAX_SCRIPTS {
        return Ok(());
    }
    Err(UserError::invalid(format!(
        "at most {MAX_SCRIPTS} workloads are allowed in a mix, not {}",
        shares.len()
    )))
}

/// A mix with each name that stands for a mix itself replaced by that one's workloads; its weight multiplies theirs.
///
/// # Errors
/// 22023 for too many workloads, for weights beyond those of a mix, for a deck beside other workloads and for one of too many
/// cards; those of `of_name`, which knows the mixes.
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
        for Share { workload, weight, is_dealt } in inner {
            let product = weight.checked_mul(share.weight).filter(|&weight| weight <= i32::MAX as u32);
            let weight = product.ok_or_else(|| {
                UserError::invalid(format!(
                    "weight {} of workload \"{}\" is too large",
                    share.weight, share.workload
                ))
                .hint(format!(
                    "It multiplies the weights of the workloads that \"{}\" stands for.",
                    share.workload
                ))
            })?;
            expanded.push(Share { workload, weight, is_dealt: is_dealt || share.is_dealt });
        }
    }
    check_count(&expanded)?;
    check_deck(expanded.iter().map(|share| (share.is_dealt, share.weight)))?;
    Ok(expanded)
}

/// A deck is a whole mix, whose weights are numbers of cards.
pub(crate) fn check_deck(shares: impl Iterator<Item = (bool, u32)> + Clone) -> Result<(), UserError> {
    if !shares.clone().any(|(is_dealt, _)| is_dealt) {
        return Ok(());
    }
    if !shares.clone().all(|(is_dealt, _)| is_dealt) {
        return Err(UserError::invalid("a deck cannot be part of a mix with weights").hint(format!(
            "Make all of it a deck, whose weights are numbers of cards: '{DECK}pk_select@9,pk_update@1'."
        )));
    }
    let cards: u64 = shares.map(|(_, weight)| u64::from(weight)).sum();
    if cards > MAX_CARDS {
        return Err(UserError::invalid(format!("a deck may have at most {MAX_CARDS} cards, not {cards}"))
            .hint("Its weights are numbers of cards."));
    }
    Ok(())
}
