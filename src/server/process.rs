//! This process and the others of the server: clocks, ids, latches, waits and signals.

use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use bench_base::error::UserError;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use crate::error::from_caught;

/// Nanoseconds in a second, for figures in seconds.
pub const NS_PER_SEC: f64 = 1e9;

/// Returns CLOCK_MONOTONIC in nanoseconds, which is the same in all processes of the machine.
#[inline]
pub fn now_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer; CLOCK_MONOTONIC is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns the processor time of this process in nanoseconds; 0 on platforms without such a clock.
pub fn own_cpu_ns() -> i64 {
    processor_clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// As [`own_cpu_ns`], for this thread, the only one of a session: its clock is faster to read.
pub fn thread_cpu_ns() -> i64 {
    processor_clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn processor_clock_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if read == 0 { time.tv_sec * 1_000_000_000 + time.tv_nsec } else { 0 }
}

/// Returns the processor time of a process in nanoseconds; `None` if there is no such process or the platform has no such clock.
pub fn cpu_ns(pid: i32) -> Option<i64> {
    #[cfg(target_os = "linux")]
    {
        if pid == 0 {
            return None;
        }
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: valid pointers; a process that has ended makes either call fail.
        unsafe {
            (libc::clock_getcpuclockid(pid, &raw mut clock) == 0
                && libc::clock_gettime(clock, &raw mut time) == 0)
                .then_some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Pins a process to one of its allowed processors, the same one for equal numbers (sched_setaffinity(2)): processes that take
/// turns on it share its caches, and its neighbour if two processors share a core. Does nothing where it is not supported or
/// allowed.
pub fn keep_on_processor(pid: i32, number: u32) {
    #[cfg(target_os = "linux")]
    {
        const SIZE: usize = size_of::<libc::cpu_set_t>();
        // SAFETY: a set of bits, of which all may be zero.
        let (mut allowed, mut chosen): (libc::cpu_set_t, libc::cpu_set_t) = unsafe { std::mem::zeroed() };
        // SAFETY: a valid pointer to a set of this size.
        if unsafe { libc::sched_getaffinity(pid, SIZE, &raw mut allowed) } != 0 {
            return;
        }
        let all = libc::CPU_SETSIZE.unsigned_abs() as usize;
        // SAFETY: the number is one of the set's.
        let processors: Vec<usize> =
            (0..all).filter(|&processor| unsafe { libc::CPU_ISSET(processor, &allowed) }).collect();
        let Some(place) = (number as usize).checked_rem(processors.len()) else { return };
        // SAFETY: as above; a process that has ended, or is another user's, makes the call fail.
        unsafe {
            libc::CPU_SET(processors[place], &mut chosen);
            libc::sched_setaffinity(pid, SIZE, &raw const chosen);
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (pid, number);
    }
}

/// Returns the process at the other end of a Unix-domain socket (SO_PEERCRED; unix(7)); `None` in another PID namespace, and on
/// other platforms than Linux.
pub fn peer_pid(socket: &impl AsRawFd) -> Option<i32> {
    #[cfg(target_os = "linux")]
    {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the descriptor is open, and the pointers are valid for a ucred of this length.
        let result = unsafe {
            let value = (&raw mut peer).cast();
            libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, value, &raw mut length)
        };
        (result == 0 && peer.pid > 0).then_some(peer.pid)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        None
    }
}

/// Returns the parent of a process from /proc/PID/stat (proc(5)); `None` if there is no such file.
pub fn parent_of(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process's name, in parentheses before it, may contain any character.
    status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the context switches of this process so far, voluntary and involuntary; 0 where they are not counted.
pub fn own_switches() -> i64 {
    let usage = own_usage();
    usage.ru_nvcsw + usage.ru_nivcsw
}

/// Returns the minor page faults of this process so far, those without reading from disk; 0 where they are not counted.
pub fn own_minor_faults() -> i64 {
    own_usage().ru_minflt
}

fn own_usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a valid pointer; the struct is plain, and stays all zeroes where the call fails.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Raises this process's limit of open files as far as allowed, and returns it.
pub fn raise_open_files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: valid pointers to a plain struct.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return u64::MAX;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 {
            raised.rlim_cur
        } else {
            limit.rlim_cur
        }
    }
}

/// Returns the time of day as a TimestampTz: microseconds since 2000-01-01.
pub fn current_timestamp() -> i64 {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

/// Keeps Rust's backtraces out of errors' DETAIL, where pgrx puts them if the server's environment has RUST_BACKTRACE. Other
/// libraries are not affected: each has its own copy of the standard library, which reads the variable once.
pub fn take_no_backtraces() {
    const VARIABLE: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(VARIABLE);
    // SAFETY: the server has one thread when it loads the library.
    unsafe { std::env::set_var(VARIABLE, "0") };
    drop(std::backtrace::Backtrace::capture());
    // SAFETY: as above.
    unsafe {
        match before {
            Some(value) => std::env::set_var(VARIABLE, value),
            None => std::env::remove_var(VARIABLE),
        }
    }
}

/// Returns an unpredictable seed.
pub fn random_seed() -> i64 {
    let mut bytes = [0; 8];
    // SAFETY: a valid buffer of that length.
    let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    if drawn { i64::from_ne_bytes(bytes) } else { now_ns() }
}

/// Returns the number of processors that are online.
pub fn processors() -> Option<u32> {
    // SAFETY: asks the C library for a number.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).ok().filter(|&count| count > 0)
}

/// Returns the size of the machine's memory in bytes.
pub fn memory_bytes() -> i64 {
    // SAFETY: asks the C library for two constants of the machine.
    unsafe { libc::sysconf(libc::_SC_PHYS_PAGES).saturating_mul(libc::sysconf(libc::_SC_PAGESIZE)) }
}

/// This process's own pid.
pub fn my_pid() -> i32 {
    // SAFETY: set when a message arrives.
    unsafe { pg_sys::MyProcPid }
}

/// Whether this process serves a client, which workers do not.
pub fn has_client() -> bool {
    // SAFETY: set when a message arrives.
    unsafe { !pg_sys::MyProcPort.is_null() }
}

/// Whether a backend with this pid is connected to the server.
pub fn is_backend(pid: i32) -> bool {
    // SAFETY: BackendPidGetProc searches the shared process array.
    unsafe { !pg_sys::BackendPidGetProc(pid).is_null() }
}

/// Shows this process as idle in pg_stat_activity.
pub fn report_idle() {
    // SAFETY: writes this process's own status entry.
    unsafe { pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null()) }
}

/// Sets the latch of another backend, if it still exists.
pub fn wake(pid: i32) {
    if pid == 0 {
        return;
    }
    // SAFETY: as in `is_backend`; a process that ends meanwhile leaves its PGPROC in place, and a latch set in vain is
    // harmless.
    unsafe {
        let process = pg_sys::BackendPidGetProc(pid);
        if !process.is_null() {
            pg_sys::SetLatch(&raw mut (*process).procLatch);
        }
    }
}

/// Cancels another backend's statement, as pg_cancel_backend does; returns false if there is no such backend.
pub fn cancel(pid: i32) -> bool {
    send_signal(pid, libc::SIGINT)
}

/// Terminates another backend, as pg_terminate_backend does; returns false if there is no such backend.
pub fn terminate(pid: i32) -> bool {
    send_signal(pid, libc::SIGTERM)
}

fn send_signal(pid: i32, signal: c_int) -> bool {
    let exists = pid != 0 && is_backend(pid);
    if exists {
        // SAFETY: a signal to a backend of this server.
        unsafe { libc::kill(pid, signal) };
    }
    exists
}

/// Forgets a pending cancel of this process, so that it does not affect later statements.
pub fn forget_cancel() {
    // SAFETY: a flag of this process's own, which signal handlers write.
    unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
}

/// Forgets a cancel request, including its second signal: the postmaster signals the process and then its process group
/// (`signal_child` in postmaster.c), and the second signal may arrive after the first one was served.
pub fn forget_cancel_request() {
    std::thread::sleep(std::time::Duration::from_millis(10));
    forget_cancel();
}

/// Waits until the latch is set or the time is up, then serves interrupts. Workers call it outside a transaction, so that
/// barriers of other backends (DROP DATABASE) do not wait for them.
pub fn nap(milliseconds: i64) {
    wait_for_latch(milliseconds, pg_sys::PG_WAIT_EXTENSION);
    pgrx::check_for_interrupts!();
}

/// As [`nap`], for a worker that must clean up before a cancel ends it.
///
/// # Errors
/// The cancel.
pub fn nap_until_canceled(milliseconds: i64) -> Result<(), UserError> {
    PgTryBuilder::new(|| {
        nap(milliseconds);
        Ok(())
    })
    // The caller ends an open transaction.
    .catch_others(|caught| Err(from_caught(caught)))
    .execute()
}

/// Serves this process's interrupts.
///
/// # Errors
/// The cancel of the current statement.
pub fn serve_interrupts() -> Result<(), UserError> {
    PgTryBuilder::new(|| {
        pgrx::check_for_interrupts!();
        Ok(())
    })
    .catch_when(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, |caught| Err(from_caught(caught)))
    .execute()
}

/// Waits until this process's latch is set or the time is up, shown as `wait_event`. The caller serves interrupts.
pub fn wait_for_latch(milliseconds: i64, wait_event: u32) {
    // WaitLatch takes 31 bits; a caller that must wait longer calls again.
    let milliseconds = milliseconds.clamp(0, i64::from(i32::MAX));
    // SAFETY: this process's own latch; WL_EXIT_ON_PM_DEATH ends the process with the postmaster.
    unsafe {
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, milliseconds, wait_event);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

/// Ends this session if its client has disconnected, which the server notices only between messages.
pub fn check_client_connection() {
    unsafe extern "C-unwind" {
        fn pq_check_connection() -> bool;
    }
    // SAFETY: MyProcPort is set in sessions that have a client, and only there is the socket looked
    // at. The guard turns an ERROR into the usual unwinding.
    unsafe {
        if has_client() && !pg_sys::ffi::pg_guard_ffi_boundary(|| pq_check_connection()) {
            pg_sys::ClientConnectionLost = 1;
            pg_sys::InterruptPending = 1;
            pgrx::check_for_interrupts!();
        }
    }
}

/// Whether a cancel or a termination is pending.
pub fn is_interrupted() -> bool {
    // SAFETY: plain reads of what signal handlers set.
    unsafe {
        (&raw const pg_sys::QueryCancelPending).read_volatile() != 0
            || (&raw const pg_sys::ProcDiePending).read_volatile() != 0
    }
}

/// Drops this process's copy of the cumulative statistics, so that the shared ones are read next.
pub fn forget_statistics() {
    // SAFETY: frees memory of this process's own.
    unsafe { pg_sys::pgstat_clear_snapshot() };
}

/// Returns the number of blocks that this process has accessed in shared buffers, hits and reads.
pub fn accessed_blocks() -> u64 {
    // SAFETY: counters of this process's own.
    unsafe {
        (pg_sys::pgBufferUsage.shared_blks_hit + pg_sys::pgBufferUsage.shared_blks_read).cast_unsigned()
    }
}

/// Drops this transaction's copy of other sessions' activity.
pub fn forget_activity() {
    // SAFETY: frees memory of this process's own.
    unsafe { pg_sys::pgstat_clear_backend_activity_snapshot() };
}

/// Serves interrupts in long loops of the crates without access to the server; also checks the client's connection now and then.
pub fn check_interrupts() {
    const CHECK_CLIENT_EVERY: Duration = Duration::from_millis(500);
    thread_local! {
        static CHECKED: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    if CHECKED.get().is_none_or(|checked| checked.elapsed() >= CHECK_CLIENT_EVERY) {
        CHECKED.set(Some(Instant::now()));
        check_client_connection();
    }
    pgrx::check_for_interrupts!();
}

/// Requests a checkpoint and waits for its end, as CHECKPOINT does (standard_ProcessUtility in tcop/utility.c), which this
/// session's role may not execute.
pub fn request_checkpoint() {
    // CHECKPOINT_FAST from 19 on.
    #[cfg(not(since_19))]
    let fast = pg_sys::CHECKPOINT_IMMEDIATE;
    #[cfg(since_19)]
    let fast = pg_sys::CHECKPOINT_FAST;
    let flags = fast | pg_sys::CHECKPOINT_FORCE | pg_sys::CHECKPOINT_WAIT;
    // SAFETY: outside of a transaction, as there; it waits with a latch, and looks at interrupts.
    unsafe { pg_sys::RequestCheckpoint(flags.cast_signed()) };
}

// Waits shown as those of a session that waits for its client.

/// The wait event of a session that waits for its client's next command, as pgbench's sessions do while a script sleeps or waits
/// for its turn. (WAIT_EVENT_CLIENT_READ, the first of its class in PostgreSQL 15 to 18.)
const CLIENT_READ: u32 = pg_sys::PG_WAIT_CLIENT;

/// Runs `wait`, during which this session is shown as waiting for its client.
pub fn as_idle<T>(wait: impl FnOnce() -> T) -> T {
    // SAFETY: what pgstat_report_wait_start and pgstat_report_wait_end do (utils/wait_event.h): the word is this
    // process's own, and read by others.
    unsafe { pg_sys::my_wait_event_info.write_volatile(CLIENT_READ) };
    let result = wait();
    // SAFETY: as above.
    unsafe { pg_sys::my_wait_event_info.write_volatile(0) };
    result
}

/// As [`wait_for_latch`], shown as waiting for its client.
pub fn wait_idle(milliseconds: i64) {
    wait_for_latch(milliseconds, CLIENT_READ);
}

/// Sleeps until a time of CLOCK_MONOTONIC, or until the next signal.
pub fn sleep_until(until_ns: i64) {
    let until = libc::timespec { tv_sec: until_ns / 1_000_000_000, tv_nsec: until_ns % 1_000_000_000 };
    // SAFETY: valid pointers; an early return is the caller's to notice.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null_mut(),
        );
    }
}

// A timer that an event loop can wait for, to the nanosecond: a timerfd(2).

/// A timer whose descriptor becomes readable at a set time.
pub struct Timer {
    descriptor: OwnedFd,
    /// The time by CLOCK_MONOTONIC; `i64::MAX`: not set.
    set_to_ns: i64,
}

impl Timer {
    /// Creates a timer that is not set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: makes a new descriptor, which nobody else knows, or fails.
        let descriptor = unsafe {
            match libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                descriptor => OwnedFd::from_raw_fd(descriptor),
            }
        };
        Ok(Self { descriptor, set_to_ns: i64::MAX })
    }

    /// Sets it to a time of CLOCK_MONOTONIC, which may be past; `i64::MAX` unsets it.
    pub fn set(&mut self, until_ns: i64) -> io::Result<()> {
        if until_ns == self.set_to_ns {
            return Ok(());
        }
        // 0 unsets a timerfd.
        let at_ns = if until_ns == i64::MAX { 0 } else { until_ns.max(1) };
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let at = libc::timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let setting = libc::itimerspec { it_interval: none, it_value: at };
        let flags = libc::TFD_TIMER_ABSTIME;
        // SAFETY: its own descriptor, and a valid pointer.
        let result = unsafe {
            libc::timerfd_settime(
                self.descriptor.as_raw_fd(),
                flags,
                &raw const setting,
                std::ptr::null_mut(),
            )
        };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
        self.set_to_ns = until_ns;
        Ok(())
    }

    /// Makes it unreadable after it has gone off, until it is set again.
    pub fn acknowledge(&mut self) {
        let mut count = 0_u64;
        // SAFETY: its own descriptor, and a buffer of the length that is given.
        unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        self.set_to_ns = i64::MAX;
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Counters that the server keeps in each process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Blocks of shared buffers looked up, found there or read.
    pub blocks: u64,
    /// Bytes of WAL inserted.
    pub wal_bytes: u64,
}

impl Usage {
    /// Returns the counts of this session up to now.
    #[inline]
    pub fn of_session() -> Self {
        // SAFETY: both are of this process, which has one thread, and are plain numbers, read and let go of at once.
        unsafe {
            let buffers = &raw const pg_sys::pgBufferUsage;
            let wal = &raw const pg_sys::pgWalUsage;
            let blocks = (*buffers).shared_blks_hit + (*buffers).shared_blks_read;
            Self { blocks: blocks.cast_unsigned(), wal_bytes: (*wal).wal_bytes }
        }
    }
}

/// The largest and the smallest blocks that fill holes of the heap, in bytes; a larger hole takes several.
const LARGEST_FILLING: usize = 64 << 10;
const SMALLEST_FILLING: usize = 1 << 10;

/// The most blocks of one size.
const MAX_FILLINGS: usize = 64;

/// Brings malloc into the state of a new backend: without holes in the heap, which a worker's preparation leaves, and without
/// free memory at its end. In such holes statements would not need memory from the kernel, which in a backend can be a third of
/// their cost. Does nothing if malloc is not glibc's.
pub fn fill_holes() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: neither touches a block that is in use.
        let end = unsafe {
            libc::malloc_trim(0);
            libc::sbrk(0) as usize
        };
        // Less than two pages are left at the end.
        let top = end.saturating_sub(2 * 4096);
        let mut size = LARGEST_FILLING;
        while size >= SMALLEST_FILLING {
            for _ in 0..MAX_FILLINGS {
                // SAFETY: any size may be asked for. A block that is not freed stays allocated until the process ends: it fills the hole.
                let block = unsafe { libc::malloc(size) };
                if block.is_null() || block as usize + size > top {
                    // SAFETY: it came from malloc just now, or is null.
                    unsafe { libc::free(block) };
                    break;
                }
            }
            size /= 2;
        }
        // SAFETY: as above.
        unsafe { libc::malloc_trim(0) };
    }
}
