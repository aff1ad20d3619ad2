//! A look at interrupts from loops over what others have written, however long that is.
//!
//! This crate knows no server. The process that it works for says once what a look is ([`set_check`]); without that there
//! is none, as in tests. A look may leave by a panic, which passes through this crate.

use std::cell::Cell;

thread_local! {
    static CHECK: Cell<fn()> = const { Cell::new(nothing) };
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

fn nothing() {}

/// Beats from one look to the next: a step of a loop takes microseconds, and a look is due every 10 ms.
const STEPS_PER_CHECK: u32 = 1024;

/// From now on this thread's loops look at interrupts by `check`.
pub fn set_check(check: fn()) {
    CHECK.set(check);
}

/// Called by each step of a loop whose length others choose.
#[inline]
pub fn check_now_and_then() {
    let steps = STEPS.get().wrapping_add(1);
    STEPS.set(steps);
    if steps.is_multiple_of(STEPS_PER_CHECK) {
        CHECK.get()();
    }
}

/// A look now, before or after work that has no loop of this crate's.
pub fn check() {
    CHECK.get()();
}

/// For tests of loops: of this crate and of those above it.
pub mod testing {
    use super::*;

    thread_local! {
        static LOOKS: Cell<u32> = const { Cell::new(0) };
    }

    /// How often interrupts are looked at by this thread during some work.
    pub fn checks_during<T>(work: impl FnOnce() -> T) -> (T, u32) {
        set_check(|| LOOKS.set(LOOKS.get() + 1));
        LOOKS.set(0);
        let result = work();
        set_check(nothing);
        (result, LOOKS.get())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::checks_during;
    use super::*;

    #[test]
    fn beats_are_looks_now_and_then() {
        let ((), looks) = checks_during(|| (0..10 * STEPS_PER_CHECK).for_each(|_| check_now_and_then()));
        assert_eq!(looks, 10);
    }
}
