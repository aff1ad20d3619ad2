//! The strategies to draw values that are worth a trial.

use bench_capture::fidelity::Call;

use super::replay_plan::{ParameterSource, ReplayPlan, has};
use super::sampling::{SampledValues, SamplingStrategy};
use crate::driver::parameters::How;

/// The strategies beside one: with ranges and arrays of other sizes.
pub fn neighbours(strategy: &SamplingStrategy, plan: &ReplayPlan, factor: f64) -> Vec<SamplingStrategy> {
    let times = |size: u64| ((size as f64 * factor).round() as u64).max(1);
    let scaled = SamplingStrategy {
        width: if is_range(plan) { times(strategy.width) } else { strategy.width },
        beyond: strategy.beyond.map(times),
        array: if has(plan, How::Array) { times(strategy.array.into()) as u32 } else { strategy.array },
        ..strategy.clone()
    };
    if scaled == *strategy { Vec::new() } else { vec![scaled] }
}

fn is_range(plan: &ReplayPlan) -> bool {
    has(plan, How::Above) && has(plan, How::Below)
}

/// Limits that return so many rows per call: exactly so many, where it is a whole number; or sizes of pages that not all calls
/// fill.
pub fn limits(captured: &Call) -> Vec<u64> {
    const PAGES: [u64; 10] = [5, 10, 20, 25, 30, 50, 100, 200, 1000, 10_000];
    let exact = (captured.rows.ceil() as u64).max(1);
    if (captured.rows - captured.rows.round()).abs() < 0.005 && captured.rows > 0.5 {
        return vec![exact];
    }
    let pages = PAGES.into_iter().filter(|&page| page >= exact).take(3);
    pages.chain([exact]).collect()
}

/// Limits of a part of a statement that are worth a trial.
pub const INNER_LIMITS: [u64; 8] = [10, 1, 3, 5, 20, 50, 100, 1000];

/// Numbers to compare with what is no column's that are worth a trial.
pub const COMPARED: [u64; 8] = [1, 0, 2, 3, 5, 10, 100, 1000];

/// Ways that are worth a trial, the first one being that without a choice.
pub fn strategies(plan: &ReplayPlan, captured: &Call) -> Vec<SamplingStrategy> {
    let first = SamplingStrategy::default();
    let mut all = vec![first.clone()];
    let add = |all: &mut Vec<SamplingStrategy>, strategy: SamplingStrategy| {
        if !all.contains(&strategy) {
            all.push(strategy);
        }
    };
    let rows = plan.relations.iter().map(|relation| relation.rows).fold(0.0, f64::max) as u64;
    let near = (captured.rows.round() as u64).max(1);
    // Others are between those that come near.
    let sizes: Vec<u64> = [near, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
        .into_iter()
        .filter(|&size| size <= rows.max(2))
        .collect();
    let (above, below) = (has(plan, How::Above), has(plan, How::Below));
    if above && below {
        sizes.iter().for_each(|&width| add(&mut all, SamplingStrategy { width, ..first.clone() }));
    }
    if above || below {
        sizes
            .iter()
            .for_each(|&beyond| add(&mut all, SamplingStrategy { beyond: Some(beyond), ..first.clone() }));
    }
    if has(plan, How::Array) {
        for array in [near.min(100) as u32, 0, 1, 2, 3, 8, 10, 20, 50, 100] {
            add(&mut all, SamplingStrategy { array, ..first.clone() });
        }
    }
    if has(plan, How::Like) {
        for pattern in [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 100] {
            add(&mut all, SamplingStrategy { pattern, ..first.clone() });
        }
        for pattern in [2, 3, 4, 6, 10] {
            add(&mut all, SamplingStrategy { pattern, infix: true, ..first.clone() });
        }
    }
    if has(plan, How::Words) {
        [2, 3].into_iter().for_each(|words| add(&mut all, SamplingStrategy { words, ..first.clone() }));
    }
    if plan.values.iter().any(|value| matches!(value, ParameterSource::Offset)) {
        [1, 2, 3, 4, 6, 10, 20]
            .into_iter()
            .for_each(|page| add(&mut all, SamplingStrategy { page, ..first.clone() }));
    }
    let others = if plan.analysed.occurrences.is_empty() {
        &[][..]
    } else {
        &[SampledValues::Distinct, SampledValues::Apart, SampledValues::Missing]
    };
    for &drawn in others {
        let is_worth = match drawn {
            SampledValues::Apart => is_apart(plan),
            SampledValues::Missing => has(plan, How::Equal),
            _ => true,
        };
        if is_worth {
            add(&mut all, SamplingStrategy { drawn, ..first.clone() });
        }
    }
    all
}

/// Whether several expressions over one relation meet parameters.
fn is_apart(plan: &ReplayPlan) -> bool {
    (0..plan.analysed.occurrences.len()).any(|occurrence| {
        let indexes = plan.parameters(occurrence);
        let expression = |&index: &usize| {
            plan.analysed.parameters[index].meeting.as_ref().map(|meeting| &meeting.expression)
        };
        let mut all = indexes.iter().filter_map(expression);
        all.next().is_some_and(|first| all.any(|other| other != first))
    })
}
