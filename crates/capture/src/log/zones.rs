//! The zones in which the times of a log are written: by abbreviations, as `CEST`, or offsets, as `+03`, which a change of the
//! clocks or of log_timezone changes in the middle of a log.

use std::collections::{BTreeSet, HashMap};

/// Seconds east of UTC of a zone's abbreviation or name, at a time there, in seconds since 2000-01-01; None where there is no such
/// zone.
pub type OffsetOf = fn(&str, f64) -> Option<i32>;

/// The longest name of a zone, in bytes; PostgreSQL's own limit (TZ_STRLEN_MAX).
const MAX_NAME: usize = 255;

/// The most zones and hours whose offsets are asked for: a log of ten years in a zone that is written by its name.
const MAX_QUESTIONS: usize = 100_000;

/// Zones that a note names.
const MOST_NAMED: usize = 5;

/// The zones of a log.
#[derive(Debug)]
pub struct LogZones {
    offset_of: OffsetOf,
    offsets: HashMap<(String, i64), Option<i32>>,
    /// That of the message before.
    latest: Option<((String, i64), Option<i32>)>,
    unknown: BTreeSet<String>,
    /// Whether a time had an offset.
    has_known: bool,
}

impl LogZones {
    /// None of them known but UTC and offsets, unless `offset_of` knows them.
    pub fn new(offset_of: OffsetOf) -> Self {
        Self { offset_of, offsets: HashMap::new(), latest: None, unknown: BTreeSet::new(), has_known: false }
    }

    /// Milliseconds to subtract from a local time to have it in UTC; 0 in an unknown zone.
    pub fn offset_ms(&mut self, zone: &str, local_ms: f64) -> f64 {
        if let Some(secs) = written_offset(zone) {
            self.has_known = true;
            return f64::from(secs) * 1e3;
        }
        // Only names mean another offset at another time.
        let hour = if zone.contains('/') { (local_ms / 3.6e6).floor() as i64 } else { 0 };
        let is_same = |((name, at), _): &((String, i64), Option<i32>)| *at == hour && name == zone;
        if !self.latest.as_ref().is_some_and(is_same) {
            let key = (zone.get(..MAX_NAME).unwrap_or(zone).to_owned(), hour);
            let offset = self.offset(&key, local_ms);
            self.latest = Some((key, offset));
        }
        f64::from(self.latest.as_ref().and_then(|(_, offset)| *offset).unwrap_or(0)) * 1e3
    }

    fn offset(&mut self, key: &(String, i64), local_ms: f64) -> Option<i32> {
        if let Some(&known) = self.offsets.get(key) {
            return known;
        }
        let is_asked = self.offsets.len() < MAX_QUESTIONS;
        let offset = if is_asked { (self.offset_of)(&key.0, local_ms / 1e3) } else { None };
        if is_asked {
            self.offsets.insert(key.clone(), offset);
        }
        if offset.is_none() && self.unknown.len() < MOST_NAMED {
            self.unknown.insert(key.0.clone());
        }
        offset
    }

    /// Zones that nobody knows. One alone does no harm: only differences of times matter.
    pub fn unknown(self) -> Vec<String> {
        let is_mixed = self.has_known || self.offsets.len() > 1;
        self.unknown.into_iter().filter(|_| is_mixed).collect()
    }
}

/// Seconds of `UTC`, `GMT`, `+03`, `-0330` and `+05:30`, as zones without a name of their own are abbreviated; none at all is that
/// of a time that is in UTC already.
fn written_offset(zone: &str) -> Option<i32> {
    if matches!(zone, "" | "UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|&c| c != ':').collect();
    if !matches!(digits.len(), 2 | 4 | 6) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(0, |two| two.parse::<i32>().unwrap_or(0));
    Some(sign * (part(0) * 3600 + part(2) * 60 + part(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read() {
        let read = ["UTC", "+03", "-0330", "+05:30", "", "CET", "+3", "--03", "+0a"].map(written_offset);
        assert_eq!(
            read,
            [Some(0), Some(10_800), Some(-12_600), Some(19_800), Some(0), None, None, None, None]
        );
    }

    #[test]
    fn each_zone_is_asked_for_once() {
        thread_local! {
            static ASKED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
        }
        let mut zones = LogZones::new(|zone, _| {
            ASKED.set(ASKED.get() + 1);
            (zone == "CET").then_some(3600)
        });
        for _ in 0..3 {
            assert_eq!(zones.offset_ms("CET", 7.2e6), 3.6e6);
            assert_eq!(zones.offset_ms("MOON", 7.2e6), 0.0);
        }
        assert_eq!((ASKED.get(), zones.unknown()), (2, vec!["MOON".to_owned()]));
    }
}
