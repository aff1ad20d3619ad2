//! Where the parts of a segment are.

use std::mem::{align_of, size_of};
use std::sync::atomic::AtomicU64;

use bench_model::intervals::ClientIntervals;
use bench_model::tally::Tally;
use bench_model::transaction_log::{Ends, LogCell};

use super::{
    BatchOfArms, ClientSlot, CommandCounters, CommandPlans, CommandTimes, ConnectionCell, Header, NodeCell,
};

/// The dimensions of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentShape {
    /// Workers that count, each into a slot of its own: clients of the engine, jobs of the wire driver, loaders.
    pub slots: u32,
    /// Clients of the wire driver; 0: each slot is a client's.
    pub connections: u32,
    pub scripts: u32,
    /// Commands of all scripts together.
    pub commands: u32,
    /// Intervals that there is room for before the coordinator has read them.
    pub ring: u32,
    /// Nodes of the cluster that the coordinator has links to.
    pub nodes: u32,
    /// Entries that each client's log has room for before the coordinator has taken them; 0: nothing is logged.
    pub log: u32,
    /// Feeders of all scripts together.
    pub feeders: u32,
    /// Batches of a duel; 0 of another run.
    pub batches: u32,
    pub spec_bytes: u32,
    /// Bytes of the feeders' rows.
    pub fed_bytes: u32,
}

/// How many rows of a feeder have been taken in sequence: a cache line that clients write.
#[repr(C, align(64))]
pub(super) struct RowsTaken(pub AtomicU64);

/// Byte offsets of the parts.
pub(super) struct Offsets {
    pub slots: usize,
    pub intervals: usize,
    pub commands: usize,
    pub times: usize,
    pub ring: usize,
    pub tallies: usize,
    pub drained: usize,
    pub plans: usize,
    pub nodes: usize,
    pub log_ends: usize,
    pub log: usize,
    pub connections: usize,
    pub connects: usize,
    pub taken: usize,
    pub arms: usize,
    pub spec: usize,
    pub fed: usize,
    pub end: usize,
}

impl SegmentShape {
    /// Of work that is a leader's alone: it has no clients or loaders, and counts nothing.
    pub const LEADER: Self = Self {
        slots: 0,
        connections: 0,
        scripts: 0,
        commands: 0,
        ring: 1,
        nodes: 0,
        log: 0,
        feeders: 0,
        batches: 0,
        spec_bytes: 0,
        fed_bytes: 0,
    };

    /// The segment's length in bytes.
    pub fn bytes(&self) -> usize {
        self.offsets().end
    }

    /// Where there is one script, the intervals tell all of it.
    pub(super) fn tallied_scripts(&self) -> usize {
        if self.scripts > 1 { self.scripts as usize } else { 0 }
    }

    pub(super) fn offsets(&self) -> Offsets {
        let slot_count = self.slots as usize;
        let slots = size_of::<Header>().next_multiple_of(align_of::<ClientSlot>());
        let intervals =
            (slots + slot_count * size_of::<ClientSlot>()).next_multiple_of(align_of::<ClientIntervals>());
        let commands = intervals + slot_count * size_of::<ClientIntervals>();
        let times = commands + slot_count * self.commands as usize * size_of::<CommandCounters>();
        let ring = times + slot_count * self.commands as usize * size_of::<CommandTimes>();
        let tallies = ring + self.ring as usize * size_of::<Tally>();
        let drained = tallies + slot_count * self.tallied_scripts() * size_of::<Tally>();
        let plans = drained + self.scripts as usize * size_of::<Tally>();
        let nodes = (plans + self.commands as usize * size_of::<CommandPlans>())
            .next_multiple_of(align_of::<NodeCell>());
        let log_ends =
            (nodes + self.nodes as usize * size_of::<NodeCell>()).next_multiple_of(align_of::<Ends>());
        let logging = if self.log > 0 { slot_count } else { 0 };
        let log = log_ends + logging * size_of::<Ends>();
        let connections = (log + logging * self.log as usize * size_of::<LogCell>())
            .next_multiple_of(align_of::<ConnectionCell>());
        let connects = (connections + self.connections as usize * size_of::<ConnectionCell>())
            .next_multiple_of(align_of::<Tally>());
        let counted = if self.connections > 0 { slot_count } else { 0 };
        let taken = (connects + counted * size_of::<Tally>()).next_multiple_of(align_of::<RowsTaken>());
        let arms = (taken + self.feeders as usize * size_of::<RowsTaken>())
            .next_multiple_of(align_of::<BatchOfArms>());
        let spec = arms + slot_count * self.batches as usize * size_of::<BatchOfArms>();
        let fed = spec + self.spec_bytes as usize;
        let end = fed + self.fed_bytes as usize;
        Offsets {
            slots,
            intervals,
            commands,
            times,
            ring,
            tallies,
            drained,
            plans,
            nodes,
            log_ends,
            log,
            connections,
            connects,
            taken,
            arms,
            spec,
            fed,
            end,
        }
    }
}

/// How many intervals there is room for, so that a coordinator that gets no processor, or waits for a disk, does no
/// harm: about a minute's worth, and never fewer than eight.
pub fn ring_for(sample_interval_secs: f64) -> u32 {
    (60.0 / sample_interval_secs).ceil().max(8.0) as u32
}

/// How many entries each of so many clients' logs has room for: together some 6 MB, which at 100,000 transactions per
/// second last a second, and enough of each for a client that gets on while the coordinator does not.
pub fn log_for(clients: u32) -> u32 {
    (131_072 / clients.max(1)).max(512)
}
