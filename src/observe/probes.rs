//! What two of the machine's services cost: a reading of the clock, and a flush to disk.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::server::process::{my_pid, now_ns};

/// Readings of the clock that are timed.
const READINGS: i64 = 20_000;

/// Flushes that are timed, while there is time.
const FLUSHES: usize = 5;

/// How long the flushes may take together.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The server's block, which is written before each flush.
const BLOCK: [u8; 8192] = [0; 8192];

/// Nanoseconds of a reading of the clock that all times here are taken from, as pg_test_timing measures it.
pub fn clock_read_ns() -> f64 {
    let began_ns = now_ns();
    let mut last_ns = began_ns;
    for _ in 0..READINGS {
        last_ns = now_ns();
    }
    (last_ns - began_ns) as f64 / READINGS as f64
}

/// Microseconds that a block's write with fdatasync takes in pg_wal, the median of some; `None` where that fails.
pub fn fsync_us() -> Option<f64> {
    // A name that the server itself removes after a crash (RemoveTempXlogFiles in xlog.c). A backend's working
    // directory is the data directory.
    let name = format!("pg_wal/xlogtemp.{}", my_pid());
    let times = time_flushes(&name);
    // Where it could not be made there is nothing to remove.
    let _ = fs::remove_file(&name);
    let mut times = times.ok()?;
    times.sort_by(f64::total_cmp);
    Some(times[times.len() / 2])
}

/// Microseconds of each flush, at least one.
fn time_flushes(name: &str) -> io::Result<Vec<f64>> {
    let file = OpenOptions::new().write(true).create_new(true).open(name)?;
    // As in a WAL segment, which is recycled: the blocks are there already.
    file.write_all_at(&BLOCK, 0)?;
    file.sync_all()?;
    let began = Instant::now();
    let mut times = Vec::with_capacity(FLUSHES);
    while times.is_empty() || (times.len() < FLUSHES && began.elapsed() < TIMEOUT) {
        let start = Instant::now();
        file.write_all_at(&BLOCK, 0)?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}
