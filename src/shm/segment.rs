//! A process's hold on a segment, and the way to its parts; the leader and the clients as others see them.

use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::sync::atomic::{AtomicU32, AtomicU64};

use bench_base::error::UserError;
use bench_model::intervals::{ClientIntervals, Ring};
use bench_model::transaction_log::{Ends, LogCell, LogQueue};
use pgrx::pg_sys;

use super::build::{self, Work};
use super::cells::MAGIC;
use super::client_slot::{BatchOfArms, ClientSlot, ConnectionCell, NodeCell, TotalsOf};
use super::shape::{RowsTaken, SegmentShape};
use super::tallies::{CommandCounters, CommandPlans, CommandTimes};
use super::{ClientState, Header, RunState, StopReason, Tally};
use crate::server::database;
use crate::server::process::{cancel, is_backend, wake};

/// What is called when this process lets go of a segment, where the mapping is still in place. A static, by whose address the
/// server knows it.
pub struct DetachCallback(pub fn(&Segment));

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn call_back(segment: *mut pg_sys::dsm_segment, argument: pg_sys::Datum) {
    // SAFETY: the server calls it with what `Segment::on_detach` has registered, before it unmaps the segment.
    unsafe {
        let DetachCallback(function) = &*argument.cast_mut_ptr::<DetachCallback>();
        if let Some(segment) = Segment::recognize(segment) {
            function(&segment);
        }
    }
}

/// A process's hold on a segment. It is neither `Send` nor `Sync`: a backend has one thread.
///
/// Dropping it does not detach: the server detaches with the resource owner, with the process,
/// or by [`Segment::detach`], so that an error takes the usual way.
pub struct Segment {
    raw: *mut pg_sys::dsm_segment,
    base: *mut u8,
    shape: SegmentShape,
    not_send: PhantomData<*mut u8>,
}

impl Segment {
    /// Makes a segment and puts the specification and the rows of feeders into it. It lasts while somebody is attached.
    pub fn create(shape: SegmentShape, spec: &str, fed: &[u8]) -> Self {
        let shape = SegmentShape { spec_bytes: spec.len() as u32, fed_bytes: fed.len() as u32, ..shape };
        let offsets = shape.offsets();
        // SAFETY: dsm_create returns a mapping of at least `end` bytes, aligned for any type, or
        // raises an error. It may reuse memory, hence the zeroes; nobody else knows its handle yet.
        let segment = unsafe {
            let raw = pg_sys::dsm_create(offsets.end, 0);
            let base = pg_sys::dsm_segment_address(raw).cast::<u8>();
            std::ptr::write_bytes(base, 0, offsets.end);
            std::ptr::copy_nonoverlapping(spec.as_ptr(), base.add(offsets.spec), spec.len());
            std::ptr::copy_nonoverlapping(fed.as_ptr(), base.add(offsets.fed), fed.len());
            Self { raw, base, shape, not_send: PhantomData }
        };
        let header = segment.header();
        header.slots.store(shape.slots, Relaxed);
        header.connections.store(shape.connections, Relaxed);
        header.scripts.store(shape.scripts, Relaxed);
        header.commands.store(shape.commands, Relaxed);
        header.ring.store(shape.ring, Relaxed);
        header.nodes.store(shape.nodes, Relaxed);
        header.log.store(shape.log, Relaxed);
        header.feeders.store(shape.feeders, Relaxed);
        header.batches.store(shape.batches, Relaxed);
        header.spec_bytes.store(shape.spec_bytes, Relaxed);
        header.fed_bytes.store(shape.fed_bytes, Relaxed);
        header.database.store(database::oid().to_u32(), Relaxed);
        header.build.store(build::own(), Relaxed);
        header.magic.store(MAGIC, Release);
        segment
    }

    /// Attaches to a run's segment; `None` when it is gone or is not one.
    pub fn attach(handle: u32) -> Option<Self> {
        // SAFETY: dsm_attach returns NULL for a handle that no segment has (any more), else a
        // mapping that stays until it is detached. Whatever it is, it has at least its own
        // length, so the header is read only where it fits, and the rest only where all fits.
        unsafe {
            let raw = pg_sys::dsm_attach(handle);
            if raw.is_null() {
                return None;
            }
            match Self::recognize(raw) {
                Some(segment) => Some(segment),
                None => {
                    pg_sys::dsm_detach(raw);
                    None
                }
            }
        }
    }

    /// Looks into a run's segment, whether or not this process is attached to it already.
    pub fn peek<T>(handle: u32, look: impl FnOnce(&Segment) -> T) -> Option<T> {
        // SAFETY: dsm_find_mapping only searches this process's own list.
        let mapped = unsafe { pg_sys::dsm_find_mapping(handle) };
        if mapped.is_null() {
            let segment = Self::attach(handle)?;
            let result = look(&segment);
            segment.detach();
            Some(result)
        } else {
            // SAFETY: a mapping of this process.
            unsafe { Self::recognize(mapped) }.as_ref().map(look)
        }
    }

    /// # Safety
    /// `raw` must be a live mapping of this process.
    unsafe fn recognize(raw: *mut pg_sys::dsm_segment) -> Option<Self> {
        // SAFETY: the caller vouches for `raw`; the lengths are checked before anything is read.
        unsafe {
            let length = pg_sys::dsm_segment_map_length(raw);
            if length < size_of::<Header>() {
                return None;
            }
            let base = pg_sys::dsm_segment_address(raw).cast::<u8>();
            let header = &*base.cast::<Header>();
            if header.magic.load(Acquire) != MAGIC || header.build.load(Relaxed) != build::own() {
                return None;
            }
            let shape = SegmentShape {
                slots: header.slots.load(Relaxed),
                connections: header.connections.load(Relaxed),
                scripts: header.scripts.load(Relaxed),
                commands: header.commands.load(Relaxed),
                ring: header.ring.load(Relaxed),
                nodes: header.nodes.load(Relaxed),
                log: header.log.load(Relaxed),
                feeders: header.feeders.load(Relaxed),
                batches: header.batches.load(Relaxed),
                spec_bytes: header.spec_bytes.load(Relaxed),
                fed_bytes: header.fed_bytes.load(Relaxed),
            };
            (shape.offsets().end <= length).then_some(Self { raw, base, shape, not_send: PhantomData })
        }
    }

    /// What others attach by.
    pub fn handle(&self) -> u32 {
        // SAFETY: `raw` is this process's live mapping.
        unsafe { pg_sys::dsm_segment_handle(self.raw) }
    }

    /// Keeps the mapping until the process ends, beyond the resource owner at hand.
    pub fn pin(&self) {
        // SAFETY: as above.
        unsafe { pg_sys::dsm_pin_mapping(self.raw) }
    }

    /// Gives the mapping back; callbacks of [`Segment::on_detach`] run.
    pub fn detach(self) {
        // SAFETY: as above; `self` is consumed, so no reference into the mapping outlives it.
        unsafe { pg_sys::dsm_detach(self.raw) }
    }

    /// Has the server call it when this process lets go of the segment, in whatever way.
    pub fn on_detach(&self, callback: &'static DetachCallback) {
        let argument = pg_sys::Datum::from(std::ptr::from_ref(callback));
        // SAFETY: the function is of this library, which stays loaded, and its argument lives as long.
        unsafe { pg_sys::on_dsm_detach(self.raw, Some(call_back), argument) }
    }

    /// Takes back a callback registered by [`Segment::on_detach`].
    pub fn cancel_on_detach(&self, callback: &'static DetachCallback) {
        let argument = pg_sys::Datum::from(std::ptr::from_ref(callback));
        // SAFETY: the server compares function and argument.
        unsafe { pg_sys::cancel_on_dsm_detach(self.raw, Some(call_back), argument) }
    }

    /// The segment's dimensions.
    pub fn shape(&self) -> SegmentShape {
        self.shape
    }

    /// The segment's header.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a Header, checked at creation or recognition.
        unsafe { &*self.base.cast::<Header>() }
    }

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

    /// # Errors
    /// 55000 when a worker has refused to serve it.
    pub fn check_refusal(&self) -> Result<(), UserError> {
        match self.header().refused_by.load(Acquire) {
            0 => Ok(()),
            worker => Err(build::installed_meanwhile(build::own(), worker)),
        }
    }

    /// A client's slot.
    pub fn slot(&self, client: u32) -> &ClientSlot {
        assert!(client < self.shape.slots);
        // SAFETY: inside the mapping by the assertion and by how offsets are computed.
        unsafe { &*self.base.add(self.shape.offsets().slots).cast::<ClientSlot>().add(client as usize) }
    }

    /// The slots of all clients, in their order.
    pub fn slots(&self) -> impl Iterator<Item = &ClientSlot> {
        (0..self.shape.slots).map(|client| self.slot(client))
    }

    /// Of a load's segment: rows that count as the fixture's and are in its tables.
    pub fn rows_written(&self) -> u64 {
        self.slots().map(|slot| slot.totals[TotalsOf::Measured as usize].committed.get()).sum()
    }

    /// Counters of a client's commands, in the order of the scripts.
    pub fn commands(&self, client: u32) -> &[CommandCounters] {
        assert!(client < self.shape.slots);
        let count = self.shape.commands as usize;
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().commands).cast::<CommandCounters>();
            std::slice::from_raw_parts(first.add(client as usize * count), count)
        }
    }

    /// Times of a client's commands, in the order of the scripts.
    pub fn times(&self, client: u32) -> &[CommandTimes] {
        assert!(client < self.shape.slots);
        let count = self.shape.commands as usize;
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().times).cast::<CommandTimes>();
            std::slice::from_raw_parts(first.add(client as usize * count), count)
        }
    }

    /// The batches of a client's duel; none of another run.
    pub fn arms(&self, client: u32) -> &[BatchOfArms] {
        assert!(client < self.shape.slots);
        let count = self.shape.batches as usize;
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().arms).cast::<BatchOfArms>();
            std::slice::from_raw_parts(first.add(client as usize * count), count)
        }
    }

    /// What a client counts by intervals.
    pub fn intervals(&self, client: u32) -> &ClientIntervals {
        assert!(client < self.shape.slots);
        // SAFETY: as for `slot`.
        unsafe {
            &*self.base.add(self.shape.offsets().intervals).cast::<ClientIntervals>().add(client as usize)
        }
    }

    /// The intervals of all clients together.
    pub fn ring(&self) -> Ring<'_> {
        // SAFETY: as for `slot`.
        let tallies = unsafe {
            let first = self.base.add(self.shape.offsets().ring).cast::<Tally>();
            std::slice::from_raw_parts(first, self.shape.ring as usize)
        };
        Ring { closed: &self.header().closed, tallies }
    }

    /// What a client measured of each script of a mix; empty where there is only one.
    pub fn tallies(&self, client: u32) -> &[Tally] {
        assert!(client < self.shape.slots);
        let count = self.shape.tallied_scripts();
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().tallies).cast::<Tally>();
            std::slice::from_raw_parts(first.add(client as usize * count), count)
        }
    }

    /// What all clients together did of each script after the measured time: at most one transaction each.
    pub fn drained(&self) -> &[Tally] {
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().drained).cast::<Tally>();
            std::slice::from_raw_parts(first, self.shape.scripts as usize)
        }
    }

    /// Plans of all commands, in the order of the scripts.
    pub fn plans(&self) -> &[CommandPlans] {
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().plans).cast::<CommandPlans>();
            std::slice::from_raw_parts(first, self.shape.commands as usize)
        }
    }

    /// A node's cell.
    pub fn node(&self, node: u32) -> &NodeCell {
        assert!(node < self.shape.nodes);
        // SAFETY: as for `slot`.
        unsafe { &*self.base.add(self.shape.offsets().nodes).cast::<NodeCell>().add(node as usize) }
    }

    /// The cells of all nodes, in their order.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeCell> {
        (0..self.shape.nodes).map(|node| self.node(node))
    }

    /// A client's log; `None` where nothing is logged.
    pub fn log(&self, client: u32) -> Option<LogQueue<'_>> {
        assert!(client < self.shape.slots);
        let entries = self.shape.log as usize;
        if entries == 0 {
            return None;
        }
        let offsets = self.shape.offsets();
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(offsets.log).cast::<LogCell>();
            Some(LogQueue {
                ends: &*self.base.add(offsets.log_ends).cast::<Ends>().add(client as usize),
                places: std::slice::from_raw_parts(first.add(client as usize * entries), entries),
            })
        }
    }

    /// The cell of a client of the wire driver.
    pub fn connection(&self, client: u32) -> &ConnectionCell {
        assert!(client < self.shape.connections);
        // SAFETY: as for `slot`.
        unsafe {
            let first = self.base.add(self.shape.offsets().connections).cast::<ConnectionCell>();
            &*first.add(client as usize)
        }
    }

    /// How long a job's connections took that it opened while measuring, each as a committed transaction is counted.
    pub fn connects(&self, job: u32) -> &Tally {
        assert!(self.shape.connections > 0 && job < self.shape.slots);
        // SAFETY: as for `slot`.
        unsafe { &*self.base.add(self.shape.offsets().connects).cast::<Tally>().add(job as usize) }
    }

    /// How many rows of a feeder its clients have taken in sequence.
    pub fn taken(&self, feeder: u32) -> &AtomicU64 {
        assert!(feeder < self.shape.feeders);
        // SAFETY: as for `slot`.
        unsafe { &(*self.base.add(self.shape.offsets().taken).cast::<RowsTaken>().add(feeder as usize)).0 }
    }

    /// The rows of feeders that the segment was created with.
    pub fn fed(&self) -> &[u8] {
        // SAFETY: inside the mapping, never written again.
        unsafe {
            let bytes = self.base.add(self.shape.offsets().fed);
            std::slice::from_raw_parts(bytes, self.shape.fed_bytes as usize)
        }
    }

    /// The specification that the segment was created with.
    pub fn spec(&self) -> &str {
        // SAFETY: inside the mapping, valid UTF-8 as it came from a &str, never written again.
        unsafe {
            let bytes = self.base.add(self.shape.offsets().spec);
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes, self.shape.spec_bytes as usize))
        }
    }
}

/// Asks the leader of a segment's workers to end the work.
pub fn ask_to_stop(header: &Header, reason: StopReason) {
    header.request_stop(reason);
    let pid = header.coordinator_pid.load(Acquire);
    if header.interruptible.load(Relaxed) == 0 || !cancel(pid) {
        wake(pid);
    }
}

/// Whether the leader of a segment's workers is alive and has not finished.
pub fn is_under_way(segment: &Segment) -> bool {
    let header = segment.header();
    header.state() != RunState::Finished && is_backend(header.coordinator_pid.load(Acquire))
}

/// A client as others see it.
#[derive(Clone, Copy, Debug)]
pub struct ClientSession {
    /// The backend that executes its statements; 0: none.
    pub pid: i32,
    pub state: ClientState,
    /// When it left its loop, by CLOCK_MONOTONIC; 0 before.
    pub ended_ns: i64,
    /// Processor time that its backend had used then, in nanoseconds; 0 before, or where it is not known.
    pub cpu_ns: i64,
    /// Context switches of its backend by then; 0 before, or where they are not known.
    pub switches: i64,
    /// Transactions ended so far, in all phases.
    pub attempts: u64,
    /// In a duel, the arm whose stretch is under way.
    pub arm: Option<usize>,
}

impl ClientSession {
    /// Ended, in whatever way.
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }
}

/// An arm from its number in shared memory.
fn arm(number: &AtomicU32) -> Option<usize> {
    (number.load(Relaxed) as usize).checked_sub(1)
}

impl Segment {
    /// Clients of the run that are here.
    pub fn clients(&self) -> u32 {
        match self.shape().connections {
            0 => self.shape().slots,
            connections => connections,
        }
    }

    /// The clients of a slot.
    pub fn clients_of(&self, slot: u32) -> Range<u32> {
        let (slots, clients) = (u64::from(self.shape().slots), u64::from(self.clients()));
        let first = |slot: u64| (slot * clients / slots) as u32;
        first(slot.into())..first(u64::from(slot) + 1)
    }

    /// A client's session.
    pub fn session(&self, client: u32) -> ClientSession {
        if self.shape().connections > 0 {
            let cell = self.connection(client);
            return ClientSession {
                pid: cell.pid.load(Relaxed),
                state: cell.state(),
                ended_ns: cell.ended_ns.load(Relaxed),
                cpu_ns: cell.cpu_ns.load(Relaxed),
                switches: cell.switches.load(Relaxed),
                attempts: cell.attempts.get(),
                arm: arm(&cell.arm),
            };
        }
        let slot = self.slot(client);
        ClientSession {
            pid: slot.pid.load(Relaxed),
            state: slot.state(),
            ended_ns: slot.ended_ns.load(Relaxed),
            cpu_ns: slot.cpu_ns.load(Relaxed),
            switches: slot.switches.load(Relaxed),
            attempts: slot.attempts(),
            arm: arm(&slot.arm),
        }
    }

    /// The sessions of all clients, in their order.
    pub fn sessions(&self) -> impl Iterator<Item = ClientSession> {
        (0..self.clients()).map(|client| self.session(client))
    }

    /// The backends on another server that serve clients, as the protocol tells of them.
    pub fn remote_pids(&self) -> Vec<i32> {
        let connections = 0..self.shape().connections;
        let pids = connections.map(|client| self.connection(client).remote_pid.load(Relaxed));
        pids.filter(|pid| *pid > 0).collect()
    }

    /// The clients of a slot that have not ended are lost, at this moment; how many they are.
    pub fn lose_clients(&self, slot: u32, now_ns: i64) -> u32 {
        let whole = self.slot(slot);
        whole.ended_ns.store(now_ns, Relaxed);
        whole.set_state(ClientState::Lost);
        if self.shape().connections == 0 {
            return 1;
        }
        let cells = self.clients_of(slot).map(|client| self.connection(client));
        let mut lost = 0;
        for cell in cells.filter(|cell| !cell.state().is_over()) {
            cell.ended_ns.store(now_ns, Relaxed);
            cell.set_state(ClientState::Lost);
            lost += 1;
        }
        lost
    }
}
