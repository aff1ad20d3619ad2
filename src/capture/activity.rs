//! What this database does while a capture lasts: how often it commits and flushes, and what its sessions wait for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bench_base::error::UserError;
use bench_capture::fidelity::{Activity, CPU, Counts};

use crate::observe::observer;
use crate::server::database;
use crate::server::spi::{fetch, fetch_all, timestamp};
use crate::server::transaction::{self, transaction};

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
