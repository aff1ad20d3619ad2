//! Background workers: how one is registered, and what each does first.
//!
//! A run has one coordinator ([`coordinator`]) and its clients ([`client`]); a load has one
//! leader ([`load_leader`]) and its loaders ([`loader`]); a sweep has one leader ([`sweep_leader`]), which asks
//! for runs and loads as a session does. A run on a Citus cluster has a session for each node ([`link`]), and one on
//! several nodes a coordinator without clients ([`cluster`]). The session that asked for any of them waits in [`caller`]. All of
//! them meet in a [`Segment`].

mod at_exit;
pub mod caller;
pub mod client;
mod cluster;
pub mod coordinator;
pub mod crew;
pub mod horizon;
mod link;
mod links;
pub mod load_leader;
pub mod loader;
mod part;
mod pause;
pub mod prewarm;
mod program;
mod sampler;
mod statements;
pub mod sweep_leader;
pub mod sweep_state;
pub mod system;
mod time_limit;
mod verdict;
mod xids;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::*;

use bench_core::error::UserError;
use pgrx::{PgTryBuilder, pg_sys};

use crate::error::{OrRaise, from_caught};
use crate::shm::{Header, RunState, Segment, StopReason, build};

/// Nanoseconds of CLOCK_MONOTONIC, the same in every process of the machine.
#[inline]
pub fn now_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer; CLOCK_MONOTONIC is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A seed that nobody can guess.
pub fn random_seed() -> i64 {
    let mut bytes = [0; 8];
    // SAFETY: a valid buffer of that length.
    let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    if drawn { i64::from_ne_bytes(bytes) } else { now_ns() }
}

/// What a worker has to know before it can read the segment; travels in bgw_extra.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extra {
    index: u32,
    database: u32,
    /// 0: the bootstrap superuser.
    role: u32,
}

/// A kind of worker.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The function that the server calls.
    pub entry: &'static CStr,
    /// As pg_stat_activity's backend_type shows it.
    pub title: &'static CStr,
    /// What users call it, or what it leads.
    pub noun: &'static str,
    /// Whether the server is to start it once more after a crash, to put in order what outlives one.
    pub returns_after_crash: bool,
}

/// A registered worker.
pub struct Worker {
    handle: *mut pg_sys::BackgroundWorkerHandle,
}

impl Worker {
    /// Registers a worker that starts as soon as the postmaster gets to it; `None` when all slots
    /// are taken. The calling process's latch is set when it starts and when it ends.
    pub fn register(kind: Kind, segment: u32, index: u32, database: u32, role: u32) -> Option<Self> {
        // SAFETY: all zeroes are valid in this plain struct; the texts fit their fields, which
        // `put` makes sure of; the extra data is plain bytes smaller than the field; the handle
        // is palloc'd in a context that lasts as long as the process.
        unsafe {
            let mut worker: pg_sys::BackgroundWorker = std::mem::zeroed();
            put(&mut worker.bgw_name, kind.title);
            put(&mut worker.bgw_type, kind.title);
            put(&mut worker.bgw_library_name, c"$libdir/pgbench_ext");
            put(&mut worker.bgw_function_name, kind.entry);
            worker.bgw_flags =
                (pg_sys::BGWORKER_SHMEM_ACCESS | pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION) as c_int;
            worker.bgw_start_time = pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished;
            worker.bgw_restart_time =
                if kind.returns_after_crash { 1 } else { pg_sys::BGW_NEVER_RESTART as c_int };
            worker.bgw_main_arg = pg_sys::Datum::from(segment);
            worker.bgw_notify_pid = pg_sys::MyProcPid;
            let extra = Extra { index, database, role };
            std::ptr::copy_nonoverlapping(
                (&raw const extra).cast::<c_char>(),
                worker.bgw_extra.as_mut_ptr(),
                std::mem::size_of::<Extra>(),
            );
            let mut handle = std::ptr::null_mut();
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
            let registered = pg_sys::RegisterDynamicBackgroundWorker(&raw mut worker, &raw mut handle);
            pg_sys::CurrentMemoryContext = context;
            registered.then_some(Self { handle })
        }
    }

    /// Whether the worker has ended, or never will start.
    pub fn has_stopped(&self) -> bool {
        let mut pid = 0;
        // SAFETY: the handle came from the server and is never freed.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.handle, &raw mut pid) };
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED
            || status == pg_sys::BgwHandleStatus::BGWH_POSTMASTER_DIED
    }

    /// Asks the postmaster to end it, started or not.
    pub fn terminate(&self) {
        // SAFETY: as above.
        unsafe { pg_sys::TerminateBackgroundWorker(self.handle) }
    }
}

fn put<const N: usize>(field: &mut [c_char; N], text: &CStr) {
    let bytes = text.to_bytes_with_nul();
    assert!(bytes.len() <= N);
    for (to, from) in field.iter_mut().zip(bytes) {
        *to = *from as c_char;
    }
}

/// How a worker takes SIGTERM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnTerminate {
    /// As a client's session: at the next CHECK_FOR_INTERRUPTS, rolling back.
    Die,
    /// By a flag, [`termination_requested`], so that there is time to write down how it ended.
    Flag,
}

static TERMINATION_REQUESTED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Whether SIGTERM has come to a worker that takes it by a flag.
pub fn termination_requested() -> bool {
    TERMINATION_REQUESTED.load(Relaxed)
}

unsafe extern "C-unwind" fn set_termination_flag(_: c_int) {
    TERMINATION_REQUESTED.store(true, Relaxed);
    // SAFETY: SetLatch is made for signal handlers; MyLatch is set before signals are let in.
    unsafe { raw_handlers::SetLatch(pg_sys::MyLatch) };
}

/// A cancel means the same as a termination: the work as a whole is to end. But timeouts of locks and statements
/// come as SIGINT as well (LockTimeoutHandler in utils/init/postinit.c), and are the statement's.
unsafe extern "C-unwind" fn cancel_or_set_flag(signal: c_int) {
    // SAFETY: what StatementCancelHandler does (tcop/postgres.c); the indicator is a plain read.
    unsafe {
        if raw_handlers::get_timeout_indicator(raw_handlers::LOCK_TIMEOUT, false)
            || raw_handlers::get_timeout_indicator(time_limit::STATEMENT_TIMEOUT, false)
        {
            (&raw mut pg_sys::QueryCancelPending).write_volatile(1);
            (&raw mut pg_sys::InterruptPending).write_volatile(1);
            raw_handlers::SetLatch(pg_sys::MyLatch);
        } else {
            set_termination_flag(signal);
        }
    }
}

/// Functions that serve as, or in, signal handlers: there no guard may stand around them.
mod raw_handlers {
    use std::ffi::c_int;

    /// LOCK_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
    pub const LOCK_TIMEOUT: c_int = 2;

    unsafe extern "C-unwind" {
        pub fn die(signal: c_int);
        pub fn SignalHandlerForConfigReload(signal: c_int);
        pub fn SetLatch(latch: *mut pgrx::pg_sys::Latch);
        pub fn get_timeout_indicator(id: c_int, reset_indicator: bool) -> bool;
        #[cfg_attr(feature = "pg18", link_name = "pqsignal_be")]
        pub fn pqsignal(
            signal: c_int,
            handler: Option<unsafe extern "C-unwind" fn(c_int)>,
        ) -> *const std::ffi::c_void;
    }
}

/// What a worker stands on once it is connected.
pub struct Post {
    /// This process's hold on the segment, until the process ends.
    pub segment: Segment,
    /// Its place in the segment.
    pub index: u32,
}

/// What every worker does first: signals, the segment, the connection to its database as its role. `None` when the
/// segment is gone: then nobody waits for it any more. One of another build of this library is refused by an error.
pub fn report_for_duty(segment: pg_sys::Datum, on_terminate: OnTerminate) -> Option<Post> {
    // SAFETY: runs once, first thing in the worker's process, on its main thread. bgw_extra was
    // written by `Worker::register` as an Extra; it is read unaligned. A resource owner is needed
    // by dsm_attach, as in the server's own parallel workers (ParallelWorkerMain).
    unsafe {
        let extra = (&raw const (*pg_sys::MyBgworkerEntry).bgw_extra).cast::<Extra>().read_unaligned();
        let handler = match on_terminate {
            OnTerminate::Die => raw_handlers::die as unsafe extern "C-unwind" fn(c_int),
            OnTerminate::Flag => set_termination_flag,
        };
        raw_handlers::pqsignal(libc::SIGTERM, Some(handler));
        if on_terminate == OnTerminate::Flag {
            raw_handlers::pqsignal(libc::SIGINT, Some(cancel_or_set_flag));
        }
        raw_handlers::pqsignal(libc::SIGHUP, Some(raw_handlers::SignalHandlerForConfigReload));
        pg_sys::BackgroundWorkerUnblockSignals();
        pg_sys::CurrentResourceOwner =
            pg_sys::ResourceOwnerCreate(std::ptr::null_mut(), c"pgbench_ext".as_ptr());
        let handle = segment.value() as u32;
        let Some(attached) = Segment::attach(handle) else {
            build::refuse(handle).or_raise();
            return None;
        };
        attached.pin();
        // Called after what a worker registers later, and before its process has gone.
        attached.on_detach(forget_me);
        connect(extra.database, extra.role);
        Some(Post { segment: attached, index: extra.index })
    }
}

/// Takes this process's id out of the segment, however the process ends: it may soon be another's.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn forget_me(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    let mine = my_pid();
    // SAFETY: called by the server with the segment that the callback was registered on, before it is unmapped.
    if let Some(segment) = unsafe { Segment::in_callback(segment) } {
        let leader = [&segment.header().coordinator_pid].into_iter();
        let pids =
            leader.chain(segment.slots().map(|slot| &slot.pid)).chain(segment.nodes().map(|node| &node.pid));
        for pid in pids.filter(|pid| pid.load(Relaxed) == mine) {
            pid.store(0, Release);
        }
    }
}

/// # Safety
/// Once in a worker's process.
unsafe fn connect(database: u32, role: u32) {
    // SAFETY: by the caller.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(database.into(), role.into(), 0) };
}

/// First thing in a worker that [`Kind::returns_after_crash`]: so that it returns after nothing else, for the server
/// starts again what has ended with another code than 0, as at a FATAL error or SIGTERM.
pub fn return_only_after_crash() {
    extern "C" fn end(_code: c_int, _argument: pg_sys::Datum) {
        // SAFETY: the callback that was registered first is called last, when all is in order.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: the callback is a function of this library, which stays loaded.
    unsafe { on_proc_exit(Some(end), pg_sys::Datum::from(0)) };
}

/// Whether this worker is one that [`Kind::returns_after_crash`].
pub fn may_return_after_crash() -> bool {
    // SAFETY: set by the server before it calls a worker's entry.
    unsafe { (*pg_sys::MyBgworkerEntry).bgw_restart_time != pg_sys::BGW_NEVER_RESTART as c_int }
}

/// The connection of a worker that has returned after a crash of the server, to the database that it was of, as the bootstrap
/// superuser.
pub fn connect_after_crash() {
    // SAFETY: runs once in the worker's process, on its main thread; bgw_extra as in `report_for_duty`.
    unsafe {
        let extra = (&raw const (*pg_sys::MyBgworkerEntry).bgw_extra).cast::<Extra>().read_unaligned();
        connect(extra.database, 0);
    }
}

unsafe extern "C-unwind" {
    fn on_proc_exit(callback: Option<extern "C" fn(c_int, pg_sys::Datum)>, argument: pg_sys::Datum);
}

/// Sets the latch of another backend, if it still is there.
pub fn wake(pid: i32) {
    if pid == 0 {
        return;
    }
    // SAFETY: BackendPidGetProc searches the shared process array; a process that ends meanwhile
    // leaves its PGPROC in place, and a latch set in vain is harmless.
    unsafe {
        let process = pg_sys::BackendPidGetProc(pid);
        if !process.is_null() {
            pg_sys::SetLatch(&raw mut (*process).procLatch);
        }
    }
}

/// Asks the leader of a segment's workers to end the work.
pub fn ask_to_stop(header: &Header, reason: StopReason) {
    header.request_stop(reason);
    let pid = header.coordinator_pid.load(Acquire);
    if header.interruptible.load(Relaxed) != 0 && pid != 0 && is_backend(pid) {
        // SAFETY: a signal to a backend of this server, as pg_cancel_backend sends it.
        unsafe { libc::kill(pid, libc::SIGINT) };
    } else {
        wake(pid);
    }
}

/// Whether a backend with this pid is connected to the server.
pub fn is_backend(pid: i32) -> bool {
    // SAFETY: as in `wake`.
    unsafe { !pg_sys::BackendPidGetProc(pid).is_null() }
}

/// Whether the leader of a segment's workers is alive and has not finished.
pub fn is_under_way(segment: &Segment) -> bool {
    let header = segment.header();
    header.state() != RunState::Finished && is_backend(header.coordinator_pid.load(Acquire))
}

/// Whether this process serves a client, which workers do not.
pub fn has_client() -> bool {
    // SAFETY: set once, when the process starts.
    unsafe { !pg_sys::MyProcPort.is_null() }
}

/// This process's own pid.
pub fn my_pid() -> i32 {
    // SAFETY: set once, when the process starts.
    unsafe { pg_sys::MyProcPid }
}

/// As [`nap`], in a worker that has something to put in order before it gives in to a cancel.
///
/// # Errors
/// The cancel, as an error like others.
pub fn nap_until_canceled(milliseconds: i64) -> Result<(), UserError> {
    PgTryBuilder::new(|| {
        nap(milliseconds);
        Ok(())
    })
    // Where a transaction is open, its end is with the caller.
    .catch_others(|caught| Err(from_caught(caught)))
    .execute()
}

/// Waits until the latch is set or the time is up, then serves interrupts. Outside a transaction
/// in workers, so that a barrier of another backend (DROP DATABASE) never waits for this one.
pub fn nap(milliseconds: i64) {
    // SAFETY: this process's own latch; WL_EXIT_ON_PM_DEATH ends the process with the postmaster.
    unsafe {
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, milliseconds.max(0), pg_sys::PG_WAIT_EXTENSION);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    pgrx::check_for_interrupts!();
}
