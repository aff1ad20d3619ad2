//! A look at interrupts from loops over what others have written, however long that is.
//!
//! This crate knows no server. The process that it works for says once what a look is ([`set`]); without that there is none, as
//! in tests. A look may leave by a panic, which passes through this crate.

use std::cell::Cell;

thread_local! {
    static LOOK: Cell<fn()> = const { Cell::new(nothing) };
    static BEATS: Cell<u32> = const { Cell::new(0) };
}

fn nothing() {}

/// Beats from one look to the next: a step of a loop takes microseconds, and a look is due every 10 ms.
const BEATS_PER_LOOK: u32 = 1024;

/// From now on this thread's loops look at interrupts by `look`.
pub fn set(look: fn()) {
    LOOK.set(look);
}

/// Called by each step of a loop whose length others choose.
#[inline]
pub fn beat() {
    let beats = BEATS.get().wrapping_add(1);
    BEATS.set(beats);
    if beats.is_multiple_of(BEATS_PER_LOOK) {
        LOOK.get()();
    }
}

/// A look now, before or after work that has no loop of this crate's.
pub fn look() {
    LOOK.get()();
}

#[cfg(test)]
pub mod tests {
    use super::*;

    thread_local! {
        static LOOKS: Cell<u32> = const { Cell::new(0) };
    }

    /// How often interrupts are looked at by this thread during some work.
    pub fn looks_during<T>(work: impl FnOnce() -> T) -> (T, u32) {
        set(|| LOOKS.set(LOOKS.get() + 1));
        LOOKS.set(0);
        let result = work();
        set(nothing);
        (result, LOOKS.get())
    }

    #[test]
    fn beats_are_looks_now_and_then() {
        let ((), looks) = looks_during(|| (0..10 * BEATS_PER_LOOK).for_each(|_| beat()));
        assert_eq!(looks, 10);
    }
}
