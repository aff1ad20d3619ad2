//! The zones of a log's times, as this server knows them.

use std::ffi::CString;

use bench_base::error::sqlstate;

use crate::server::guc;
use crate::server::spi::fetch;
use crate::server::transaction::rolled_back;

/// Seconds east of UTC of a zone at a local time, in seconds since 2000-01-01. An abbreviation is first looked for in the zone
/// that the log is written in: `IST` is not Israel's in India.
pub fn offset_of(zone: &str, local_secs: f64) -> Option<i32> {
    let log_zone = CString::new(guc::current("log_timezone")?).ok()?;
    // At the end of a summer, a local time has two abbreviations.
    let sql = "SELECT extract(epoch FROM l.local - (i.at AT TIME ZONE 'UTC'))::int4 \
               FROM (SELECT timestamp '2000-01-01' + make_interval(secs => $2) AS local) l, \
                    unnest('{0 h,1 h,-1 h}'::interval[]) AS s (step), \
                    LATERAL (SELECT l.local::timestamptz + s.step AS at) i \
               WHERE to_char(i.at, 'TZ') = $1 AND i.at::timestamp = l.local LIMIT 1";
    let of_log =
        guc::with_setting(c"TimeZone", &log_zone, || fetch::<i32>(sql, &[zone.into(), local_secs.into()]));
    if let Ok(Some(offset)) = of_log {
        return Some(offset);
    }
    let sql = "SELECT extract(epoch FROM l.local - ((l.local AT TIME ZONE $1) AT TIME ZONE 'UTC'))::int4 \
               FROM (SELECT timestamp '2000-01-01' + make_interval(secs => $2) AS local) l";
    match rolled_back(|| fetch::<i32>(sql, &[zone.into(), local_secs.into()])) {
        Ok(offset) => offset,
        Err(canceled) if canceled.sqlstate == sqlstate::QUERY_CANCELED => crate::error::raise(canceled),
        Err(_) => None,
    }
}
