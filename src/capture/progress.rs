//! How far a capture is, and the NOTICEs about it: from the worker of bench.capture by the segment to the session that waits for
//! it, and in bench.capture_log by the session itself.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::shm::{CapturePhase, Segment};

/// How often the caller gets a NOTICE.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Where this process's capture is.
#[derive(Clone, Copy)]
struct Standing {
    phase: CapturePhase,
    done: u64,
    total: u64,
}

thread_local! {
    /// The segment of the worker that captures.
    static SEGMENT: Cell<Option<u32>> = const { Cell::new(None) };
    static STANDING: Cell<Standing> =
        const { Cell::new(Standing { phase: CapturePhase::Observation, done: 0, total: 0 }) };
    /// When this session said something last, of a capture of its own.
    static REPORTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Reports what this process captures to those who wait for this segment.
pub fn report_to(segment: &Segment) {
    SEGMENT.set(Some(segment.handle()));
}

/// Enters a phase; `total` is 0 where its length is not known.
pub fn enter(phase: CapturePhase, total: u64) {
    // The first NOTICE of a session's own capture comes after a while, as those of a worker's do.
    if SEGMENT.get().is_none() && phase == CapturePhase::Log {
        REPORTED.set(Some(Instant::now()));
    }
    put(Standing { phase, done: 0, total });
}

/// Says that so much more of the phase is done.
pub fn advance(done: u64) {
    let standing = STANDING.get();
    put(Standing { done: standing.done + done, ..standing });
}

/// Says how much of the phase is done.
pub fn set_done(done: u64) {
    put(Standing { done, ..STANDING.get() });
}

fn put(standing: Standing) {
    STANDING.set(standing);
    let Standing { phase, done, total } = standing;
    if let Some(segment) = SEGMENT.get() {
        Segment::peek(segment, |segment| segment.header().capture.set(phase, done, total));
    } else if REPORTED.get().is_some_and(|reported| reported.elapsed() >= REPORT_EVERY) {
        REPORTED.set(Some(Instant::now()));
        pgrx::notice!("capture: {}", sentence(standing));
    }
}

/// The NOTICEs of a session that waits for a capture.
pub struct CaptureReporter<'a> {
    capture: &'a str,
    reported: Instant,
}

impl<'a> CaptureReporter<'a> {
    /// For the capture of this name.
    pub fn new(capture: &'a str) -> Self {
        Self { capture, reported: Instant::now() }
    }

    /// Says where the capture is, every few seconds.
    pub fn report(&mut self, segment: &Segment) {
        if self.reported.elapsed() < REPORT_EVERY {
            return;
        }
        self.reported = Instant::now();
        let (phase, done, total) = segment.header().capture.get();
        pgrx::notice!("capture {}: {}", self.capture, sentence(Standing { phase, done, total }));
    }
}

fn sentence(standing: Standing) -> String {
    let Standing { phase, done, total } = standing;
    match phase {
        CapturePhase::Observation => {
            format!("observing the application, {} s left", total.saturating_sub(done))
        }
        CapturePhase::Log => format!("reading the log, {} of {} MB", done >> 20, total.max(done) >> 20),
        CapturePhase::Analysis => format!("trying what was captured, {done} of {total}"),
    }
}
