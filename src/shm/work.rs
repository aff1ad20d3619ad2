//! What a segment is for.

use std::fmt;

/// The work that a segment's workers do, with the id of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Run(i64),
    Load(i64),
    Sweep(i64),
}

impl Work {
    /// What it is called, also in the names of its table and functions.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Load(_) => "load",
            Self::Sweep(_) => "sweep",
        }
    }

    pub fn id(self) -> i64 {
        let (Self::Run(id) | Self::Load(id) | Self::Sweep(id)) = self;
        id
    }

    /// As the head of a segment has it, which other builds of the library read as well: ids of runs, those of loads below 0,
    /// and those of sweeps from the smallest number on.
    pub(super) fn word(self) -> i64 {
        match self {
            Self::Run(run_id) => run_id,
            Self::Load(load_id) => -load_id,
            Self::Sweep(sweep_id) => i64::MIN + sweep_id,
        }
    }

    pub(super) fn from_word(word: i64) -> Option<Self> {
        match word {
            0 => None,
            1.. => Some(Self::Run(word)),
            _ if word > i64::MIN / 2 => Some(Self::Load(-word)),
            _ => Some(Self::Sweep(word.wrapping_sub(i64::MIN))),
        }
    }
}

/// "run 1" or the like.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.noun(), self.id())
    }
}
