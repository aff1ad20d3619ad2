//! The order of a sweep's runs: random within each round, so that what drifts meanwhile (a machine that grows warm, a
//! table that grows) does not fall upon one variant.

use std::collections::HashMap;

use bench_stats::variation;
use bench_stats::variation::values_needed;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::ask::{MAX_RUNS, SweepOptions, Until};

/// A run of a sweep: a rung of a variant in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepCell {
    /// From 1.
    pub round: u32,
    /// Index in [`SweepSetup::variants`](bench_results::experiment::SweepSetup::variants).
    pub variant: usize,
    pub clients: u32,
}

impl SweepOptions {
    /// The sweep's runs, in their order; none where they are a search's.
    pub fn plan(&self) -> Vec<SweepCell> {
        if self.search.is_some() { Vec::new() } else { plan(self) }
    }

    /// The runs after those of [`plan`](Self::plan), by the tps of these, where no number of rounds was given.
    pub fn further(&self, done: &[(SweepCell, f64)]) -> Vec<SweepCell> {
        further(self, done)
    }

    /// How sure the least sure mean is by the tps of all runs, as [`Until::within`] has it; `None` where a number of rounds was
    /// given, or runs are missing.
    pub fn reached(&self, done: &[(SweepCell, f64)]) -> Option<f64> {
        reached(self, done)
    }

    /// The seed of the random numbers of a round's runs: the same for all rungs and variants of a round, so that they
    /// differ in nothing else, and another one in each round, so that rounds are samples and not repetitions.
    pub fn seed_of_round(&self, round: u32) -> i64 {
        generator(self.setup.seed, u64::from(round)).next_u64().cast_signed()
    }
}

/// A generator whose numbers stay the same from version to version, for the seed is kept with the sweep.
fn generator(seed: i64, stream: u64) -> Pcg64 {
    Pcg64::new(u128::from(seed.cast_unsigned()), u128::from(stream))
}

/// All runs. Where variants load tables of their own, change the database or need a restart, the runs of one follow each other within a round:
/// that is dear.
fn plan(options: &SweepOptions) -> Vec<SweepCell> {
    (1..=options.setup.rounds).flat_map(|round| of_round(options, round)).collect()
}

/// The runs of a round.
fn of_round(options: &SweepOptions, round: u32) -> Vec<SweepCell> {
    let is_dear = options.needs_restarts()
        || options.setup.variants.iter().any(|variant| !variant.load.is_empty() || variant.sql.is_some());
    let mut random = generator(options.setup.seed, u64::from(round));
    let of =
        |variant| options.setup.clients.iter().map(move |&clients| SweepCell { round, variant, clients });
    let mut variants: Vec<usize> = (0..options.setup.variants.len()).collect();
    if is_dear {
        variants.shuffle(&mut random);
        variants
            .into_iter()
            .flat_map(|variant| {
                let mut rungs: Vec<SweepCell> = of(variant).collect();
                rungs.shuffle(&mut random);
                rungs
            })
            .collect()
    } else {
        let mut all: Vec<SweepCell> = variants.into_iter().flat_map(of).collect();
        all.shuffle(&mut random);
        all
    }
}

/// The rounds after the first ones, where those say how many there are to be: of each rung and variant as many as its tps
/// take; where variants are compared, as many as the ratio of each rung's takes. `done` has the tps of the first rounds' runs.
/// Empty where these are enough, or one of them is missing.
fn further(options: &SweepOptions, done: &[(SweepCell, f64)]) -> Vec<SweepCell> {
    let Some(until) = &options.until else { return Vec::new() };
    let needed = |variant: usize, clients: u32| {
        let first: Option<Vec<f64>> = (1..=options.setup.rounds)
            .map(|round| value(until, done, SweepCell { round, variant, clients }))
            .collect();
        values_needed(&first?, until.within).map(|rounds| rounds.min(until.most))
    };
    let mut rounds = HashMap::new();
    for variant in 0..options.setup.variants.len() {
        for &clients in &options.setup.clients {
            let Some(needed) = needed(variant, clients) else { return Vec::new() };
            rounds.insert((variant, clients), needed);
        }
    }
    let last = rounds.values().copied().max().unwrap_or_default();
    let is_needed = |cell: &SweepCell| cell.round <= rounds[&(cell.variant, cell.clients)];
    let mut further = Vec::new();
    for round in options.setup.rounds + 1..=last {
        let cells: Vec<SweepCell> = of_round(options, round).into_iter().filter(is_needed).collect();
        // Whole rounds, or some rungs would have more of them than others that vary as much.
        if done.len() + further.len() + cells.len() > MAX_RUNS {
            break;
        }
        further.extend(cells);
    }
    further
}

/// What of a rung's round is to be sure: its tps, or the ratio of the two variants.
fn value(until: &Until, done: &[(SweepCell, f64)], cell: SweepCell) -> Option<f64> {
    let tps = |wanted: SweepCell| done.iter().find(|(cell, _)| *cell == wanted).map(|(_, tps)| *tps);
    match until.paired {
        true => Some(tps(SweepCell { variant: 1, ..cell })? / tps(SweepCell { variant: 0, ..cell })?),
        false => tps(cell),
    }
}

/// How far to either side, as a share, the 95 % interval of the least sure mean reaches after all rounds, where their number
/// was not given; `None` where it was, or where runs are missing.
fn reached(options: &SweepOptions, done: &[(SweepCell, f64)]) -> Option<f64> {
    let until = options.until.as_ref()?;
    let mut widest: f64 = 0.0;
    for variant in 0..options.setup.variants.len() {
        for &clients in &options.setup.clients {
            let of = |round| value(until, done, SweepCell { round, variant, clients });
            let first: Vec<f64> = (1..=options.setup.rounds).map(of).collect::<Option<_>>()?;
            let rounds = (1..=until.most).filter(|&round| of(round).is_some()).count();
            widest = widest.max(variation::reached(&first, u32::try_from(rounds).ok()?)?);
        }
    }
    Some(widest)
}
