//! A timer that an event loop can wait for, to the nanosecond: a timerfd(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Readable from the moment on that it is set to.
pub struct Timer {
    descriptor: OwnedFd,
    /// When it goes off, by CLOCK_MONOTONIC; `i64::MAX`: never.
    set_to_ns: i64,
}

impl Timer {
    /// One that is not set.
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

    /// Sets it to a moment of CLOCK_MONOTONIC, which may be past; `i64::MAX`: never.
    pub fn set(&mut self, until_ns: i64) -> io::Result<()> {
        if until_ns == self.set_to_ns {
            return Ok(());
        }
        // All zeroes would mean never.
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

    /// It has gone off: it is not readable any more until it is set again.
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
