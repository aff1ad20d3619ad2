//! Waits that look to others as a session's that waits for its client.

use pgrx::pg_sys;

use super::process::wait_for_latch;

/// A session that waits for its client's next command: so do the sessions of pgbench while a script of
/// theirs sleeps, or waits for its turn. (WAIT_EVENT_CLIENT_READ, the first of its class in PostgreSQL 15 to 18.)
const CLIENT_READ: u32 = pg_sys::PG_WAIT_CLIENT;

/// Shows this session as waiting for its client meanwhile.
pub fn as_idle<T>(wait: impl FnOnce() -> T) -> T {
    // SAFETY: what pgstat_report_wait_start and pgstat_report_wait_end do (utils/wait_event.h): the word is this
    // process's own, and read by others.
    unsafe { pg_sys::my_wait_event_info.write_volatile(CLIENT_READ) };
    let result = wait();
    // SAFETY: as above.
    unsafe { pg_sys::my_wait_event_info.write_volatile(0) };
    result
}

/// Waits until the latch is set or so many milliseconds have passed, as an idle session. Interrupts are the caller's.
pub fn wait_idle(milliseconds: i64) {
    wait_for_latch(milliseconds, CLIENT_READ);
}

/// Sleeps to a moment of CLOCK_MONOTONIC, or to the next signal.
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
