//! The order of a sweep's runs: random within each round, so that what drifts meanwhile (a machine that grows warm, a
//! table that grows) does not fall upon one variant.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::SweepOptions;

/// A run of a sweep: a rung of a variant in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// From 1.
    pub round: u32,
    /// Index in [`SweepOptions::variants`].
    pub variant: usize,
    pub clients: u32,
}

/// A generator whose numbers stay the same from version to version, for the seed is kept with the sweep.
pub fn generator(seed: i64, stream: u64) -> Pcg64 {
    Pcg64::new(u128::from(seed.cast_unsigned()), u128::from(stream))
}

/// All runs. Where variants load tables of their own, the runs of one follow each other within a round: to load is dear.
pub fn plan(options: &SweepOptions) -> Vec<Cell> {
    let loads = options.variants.iter().any(|variant| !variant.load.is_empty());
    let mut cells = Vec::new();
    for round in 1..=options.rounds {
        let mut random = generator(options.seed, u64::from(round));
        let of = |variant| options.clients.iter().map(move |&clients| Cell { round, variant, clients });
        let mut variants: Vec<usize> = (0..options.variants.len()).collect();
        if loads {
            variants.shuffle(&mut random);
            for variant in variants {
                let mut rungs: Vec<Cell> = of(variant).collect();
                rungs.shuffle(&mut random);
                cells.extend(rungs);
            }
        } else {
            let mut all: Vec<Cell> = variants.into_iter().flat_map(of).collect();
            all.shuffle(&mut random);
            cells.extend(all);
        }
    }
    cells
}
