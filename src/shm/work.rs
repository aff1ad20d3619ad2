//! What a segment is for.

use std::fmt;
use std::sync::atomic::Ordering::*;

use super::Segment;
use crate::server::database;

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

    fn from_word(word: i64) -> Option<Self> {
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

impl Segment {
    /// Makes it the segment of this work, in the transaction that writes the row: who can read the row finds the leader at
    /// work.
    pub fn claim(&self, work: Work) {
        self.header().claimed.store(work.word(), Release);
    }

    /// Tells those who wait for the work its id; its row is committed.
    pub fn announce(&self, work: Work) {
        self.header().announced.store(work.word(), Release);
    }

    /// Whether this is the segment of that work of this database.
    pub fn is_of(&self, work: Work) -> bool {
        let header = self.header();
        header.claimed.load(Acquire) == work.word()
            && header.database.load(Relaxed) == database::oid().to_u32()
    }

    /// The work that it is of, once its row is committed.
    pub fn announced(&self) -> Option<Work> {
        Work::from_word(self.header().announced.load(Acquire))
    }

    /// The run that it is of; 0 while it has none.
    pub fn run_id(&self) -> i64 {
        if let Some(Work::Run(run_id)) = self.announced() { run_id } else { 0 }
    }

    /// The load that it is of; 0 while it has none.
    pub fn load_id(&self) -> i64 {
        if let Some(Work::Load(load_id)) = self.announced() { load_id } else { 0 }
    }

    /// The sweep that it is of; 0 while it has none.
    pub fn sweep_id(&self) -> i64 {
        if let Some(Work::Sweep(sweep_id)) = self.announced() { sweep_id } else { 0 }
    }
}
