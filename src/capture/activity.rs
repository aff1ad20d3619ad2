//! What this database does while a capture lasts, how often it commits and flushes and what its sessions wait for; and how far the
//! capture is.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bench_base::error::UserError;
use bench_capture::fidelity::{Activity, CPU, Counts};

use crate::observe::observer;
use crate::server::database;
use crate::server::spi::{fetch, fetch_all, timestamp};
use crate::server::transaction::{self, transaction};
use crate::shm::{CapturePhase, Segment};

/// The counters at one moment. Sessions report theirs once a second, and so are half a second late on average: what is
/// read within the second after the moment is right on average.
pub struct ActivityMoment {
    at: Instant,
    /// From when on the counters are read.
    opened: Instant,
    /// Transactions of this process, which are no application's.
    own: u64,
    readings: f64,
    /// Sums over the readings.
    sums: Figures,
}

/// Transactions that have ended, milliseconds at work, bytes, full-page images and flushes of WAL.
type Figures = [Option<f64>; 5];

impl ActivityMoment {
    /// How long after the moment the counters are read.
    pub const READ_FOR: Duration = Duration::from_secs(1);

    /// Now.
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            opened: Instant::now(),
            own: transaction::count(),
            readings: 0.0,
            sums: [Some(0.0); 5],
        }
    }

    /// They are read from here on: something else has taken time.
    pub fn open(&mut self) {
        self.opened = Instant::now();
    }

    /// Whether they are to be read again.
    pub fn is_open(&self) -> bool {
        self.opened.elapsed() < Self::READ_FOR
    }

    /// Reads them, in transactions of its own.
    pub fn read(&mut self) -> Result<(), UserError> {
        let server = observer::read()?;
        let of_database = transaction(|| {
            let sql = "SELECT ARRAY[pg_stat_get_db_xact_commit($1) + pg_stat_get_db_xact_rollback($1), \
                                    pg_stat_get_db_active_time($1)]";
            fetch::<Vec<Option<f64>>>(sql, &[database::oid().into()])
        })?;
        let server = [server.wal_bytes, server.wal_fpi, server.wal_syncs];
        let figures = of_database.unwrap_or_default().into_iter();
        let figures = figures.chain(server.map(|count| count.map(|count| count as f64)));
        for (sum, figure) in self.sums.iter_mut().zip(figures) {
            *sum = sum.zip(figure).map(|(sum, figure)| sum + figure);
        }
        self.readings += 1.0;
        Ok(())
    }

    /// What has come since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Activity {
        let came = |place: usize| {
            let mean = |moment: &Self| {
                moment.sums[place].filter(|_| moment.readings > 0.0).map(|sum| sum / moment.readings)
            };
            mean(self).zip(mean(earlier)).map(|(now, before)| (now - before).max(0.0))
        };
        let count = |place: usize| came(place).map(|count| count.round() as i64);
        Activity {
            secs: (self.at - earlier.at).as_secs_f64(),
            transactions: (count(0).unwrap_or_default() - (self.own - earlier.own).cast_signed()).max(0),
            active_ms: came(1),
            wal_bytes: count(2),
            wal_fpi: count(3),
            wal_syncs: count(4),
            ..Activity::default()
        }
    }
}

/// Sessions of this database that have been at work since then, a TimestampTz, as far as this role may see them.
pub fn sessions_at_work(since: i64) -> Result<u64, UserError> {
    let sql = "SELECT count(*) FROM pg_stat_get_activity(NULL) a \
               WHERE a.datid = $1 AND a.backend_type = 'client backend' \
                   AND a.query_start > $2";
    let count = fetch::<i64>(sql, &[database::oid().into(), timestamp(since).into()])?;
    Ok(count.unwrap_or_default().unsigned_abs())
}

/// The activity with what was counted of its statements.
pub fn with_statements(activity: Activity, counts: &Counts) -> Activity {
    Activity {
        statements: counts.calls,
        rows: Some(counts.rows),
        blocks: Some(counts.hit + counts.read),
        exec_ms: Some(counts.exec_ms),
        ..activity
    }
}

/// How the row of [`WaitWatch::look`] is called of a session that is idle in a transaction.
const IDLE: &str = "idle in transaction";

/// What sessions of this database wait for that are at work, seen now and then. Of those of other roles without the
/// privileges of pg_read_all_stats nothing is seen.
#[derive(Default)]
pub struct WaitWatch {
    /// How often each was seen.
    pub waits: BTreeMap<String, f64>,
    /// How often a session was seen that was idle in a transaction: such has several statements.
    pub idle_in_transaction: i64,
}

impl WaitWatch {
    /// Looks once.
    pub fn look(&mut self) -> Result<(), UserError> {
        let seen = transaction(|| {
            fetch_all(
                "SELECT CASE WHEN a.state <> 'active' THEN $3 WHEN a.wait_event IS NULL THEN $1 ELSE concat(a.wait_event_type, ':', a.wait_event) END, \
                     count(*) \
                 FROM pg_stat_get_activity(NULL) a \
                 WHERE a.datid = $2 AND a.state = ANY ('{active,idle in transaction}') \
                     AND a.backend_type = 'client backend' GROUP BY 1",
                &[CPU.into(), database::oid().into(), IDLE.into()],
                |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<i64>(2)?.unwrap_or_default())),
            )
        })?;
        for (event, count) in seen {
            if event == IDLE {
                self.idle_in_transaction += count;
                continue;
            }
            *self.waits.entry(event).or_default() += count as f64;
        }
        Ok(())
    }
}

// How far a capture is, and the NOTICEs about it: from the worker of bench.capture by the segment to the session that waits for
// it, and in bench.capture_log by the session itself.

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

/// Whether this process is a worker that captures.
pub fn is_in_worker() -> bool {
    SEGMENT.get().is_some()
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
