//! What the server announced with its time, and what throughput did then.
//!
//! A cause that is guessed has to coincide beyond chance. A checkpoint, a vacuum or a reload is known with its time, so
//! the seconds after it are compared with those before. All events of a kind (and table) are judged together, and one
//! that began before there was anything to compare with is judged by its end. The fall of the mean throughput has to
//! be beyond what the intervals vary by themselves, and greater than at nearly every other place of the run, at which
//! the same windows are laid (a circular shift as in [`bench_stats::rotation`]): a run that falls every now and then
//! does so beside events too.

use std::ops::Range;

use bench_base::sentence::{MEGABYTE, figure, first_few, grouped, milliseconds, percent, seconds};
use bench_results::{Document, Event, Finding, Samples, Series, Severity, Topic};
use bench_stats::robust;
use bench_stats::rotation::Ring;
use serde_json::json;

use crate::dips::causes::{CauseKind, REPORTED_WITHIN, is_off, is_vacuum};
use crate::dips::detect::{Detected, Dip};
use crate::intervals::{Intervals, finding};

/// Seconds before an event that are compared, at most, and after it, at least and at most; the latter no more than a
/// quarter of the run.
const BEFORE_SECS: f64 = 3.0;
const LEAST_SECS: f64 = 1.0;
const MOST_SECS: f64 = 10.0;
const MOST_OF_RUN: usize = 4;
/// One window after an event is so much longer than the next shorter one that is tried.
const WIDER: f64 = 1.3;
/// The least fall of throughput, and that from which on it is a warning.
const LEAST_FALL: f64 = 0.05;
const WARNING_FALL: f64 = 0.2;
/// So many standard errors at least. With them, `announced_rates` tells of 1 in 50 events that did nothing in runs without a
/// fall, of fewer in others.
const LEAST_ERRORS: f64 = 2.3;
/// What the first second after an event has at least of the fall of a longer window: else it was something later.
const LEAST_AT_ONCE: f64 = 0.5;
/// The share of all other places at which throughput may have fallen as much, and how many there have to be.
const MOST_ELSEWHERE: f64 = 0.02;
const LEAST_PLACES: usize = 10;
/// Shifts that are tried at most.
const MOST_SHIFTS: usize = 1000;
/// Intervals of a running median, from which the intervals' own variation is measured, and what it makes too small.
const RUNNING_HALF: usize = 5;
const RUNNING: f64 = 1.25;
/// The least ratio of full-page images per second after a checkpoint to those before it.
const LEAST_RATIO_OF_IMAGES: f64 = 2.0;

/// What throughput did after events of one kind.
pub struct Effect<'a> {
    events: Vec<&'a Event>,
    /// The events' ends are what counts: throughput was low until then.
    by_end: bool,
    /// The intervals of low throughput at each of them, and those that they are compared with.
    pub low: Vec<Range<usize>>,
    usual: Vec<Range<usize>>,
    /// The fall of the mean throughput as a share, with half of its confidence interval of 95 %.
    fall: f64,
    margin: f64,
}

/// What the events of a run did to its throughput, as far as it is beyond chance.
pub fn effects<'a>(document: &'a Document, intervals: &Intervals, detected: &Detected) -> Vec<Effect<'a>> {
    let relative: Option<Vec<f64>> = intervals
        .tps
        .iter()
        .zip(&detected.expected)
        .map(|(tps, expected)| Some(tps / expected).filter(|share| share.is_finite()))
        .collect();
    let Some(relative) = relative.filter(|relative| !relative.is_empty()) else { return Vec::new() };
    let count = relative.len();
    let judge = Judge::new(&relative, intervals.typical_secs());
    let is_same = |one: &Event, other: &Event| one.kind == other.kind && one.relation == other.relation;
    let mut groups: Vec<Vec<&Event>> = Vec::new();
    for event in document.events.iter().filter(|event| event.started.is_finite()) {
        match groups.iter_mut().find(|group| is_same(group[0], event)) {
            Some(group) => group.push(event),
            None => groups.push(vec![event]),
        }
    }
    let place = |secs: f64| intervals.ends.partition_point(|&end| end <= secs);
    let of_group = |group: &Vec<&'a Event>| {
        let begins: Vec<(usize, &Event)> = group.iter().map(|event| (place(event.started), *event)).collect();
        let (begins, events) = judge.with_room(begins);
        if let Some(found) = judge.judged(&judge.forward, &begins) {
            let low = begins.iter().map(|begin| begin + found.offset..begin + found.offset + found.width);
            let usual = begins.iter().map(|begin| begin - found.before..*begin);
            return Some(found.effect(events, false, low.collect(), usual.collect()));
        }
        // What ended is what began if time goes backwards.
        let began_early = |event: &&Event| event.started < intervals.starts[0] + LEAST_SECS;
        let ends = group.iter().filter(|event| began_early(event)).filter_map(|event| {
            let end = event.ended.filter(|end| end.is_finite() && *end > 0.0)?;
            Some((count - 1 - place(end).min(count - 1), *event))
        });
        let (ends, events) = judge.with_room(ends.collect());
        let found = judge.judged(&judge.backward, &ends)?;
        let back = |range: Range<usize>| count - range.end..count - range.start;
        let low = ends.iter().map(|end| back(end + found.offset..end + found.offset + found.width));
        let usual = ends.iter().map(|end| back(end - found.before..*end));
        Some(found.effect(events, true, low.collect(), usual.collect()))
    };
    groups.iter().filter_map(of_group).collect()
}

/// A run's throughput as shares of what was expected, forward and backward, and how it varies.
struct Judge {
    forward: Ring,
    backward: Ring,
    sigma: f64,
    /// What the autocorrelation makes of a mean's variance.
    inflation: f64,
    most_before: usize,
    /// Intervals after an event that are tried, in ascending order.
    widths: Vec<usize>,
}

/// The windows at which throughput fell most clearly.
#[derive(Clone, Copy, Debug)]
struct Found {
    offset: usize,
    width: usize,
    before: usize,
    fall: f64,
    error: f64,
}

impl Found {
    fn errors(&self) -> f64 {
        self.fall / self.error
    }

    fn effect<'a>(
        &self,
        events: Vec<&'a Event>,
        by_end: bool,
        low: Vec<Range<usize>>,
        usual: Vec<Range<usize>>,
    ) -> Effect<'a> {
        Effect { events, by_end, low, usual, fall: self.fall, margin: 1.96 * self.error }
    }
}

impl Judge {
    fn new(relative: &[f64], secs: f64) -> Judge {
        let count = relative.len();
        let (sigma, inflation) = variation(relative);
        let in_intervals = |of_secs: f64| (of_secs / secs).round().clamp(1.0, count as f64) as usize;
        let most = in_intervals(MOST_SECS).min((count / MOST_OF_RUN).max(1));
        let mut widths = vec![in_intervals(LEAST_SECS)];
        while let Some(&last) = widths.last()
            && last < most
        {
            widths.push(((last as f64 * WIDER).ceil() as usize).min(most));
        }
        let backward = Ring::new(&relative.iter().rev().copied().collect::<Vec<f64>>());
        let most_before = in_intervals(BEFORE_SECS);
        Judge { forward: Ring::new(relative), backward, sigma, inflation, most_before, widths }
    }

    /// Those that have enough intervals before and after them, and between them and the one before.
    fn with_room<'a>(&self, mut places: Vec<(usize, &'a Event)>) -> (Vec<usize>, Vec<&'a Event>) {
        places.sort_by_key(|(place, _)| *place);
        let least = self.widths[0];
        let mut last = 0;
        places.retain(|&(place, _)| {
            let has_room = place >= last + least && place + 1 + least <= self.forward.count;
            if has_room {
                last = place + 1 + least;
            }
            has_room
        });
        places.into_iter().unzip()
    }

    /// How throughput fell at these places; `None` if chance explains it.
    fn judged(&self, ring: &Ring, places: &[usize]) -> Option<Found> {
        let (first, last) = (*places.first()?, *places.last()?);
        let between = places.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(usize::MAX);
        let before = self.most_before.min(first).min(between / 2).max(1);
        let room = (ring.count - 1 - last).min(between.saturating_sub(before + 1));
        let widths = self.widths.iter().copied().filter(|&width| width <= room.max(self.widths[0]));
        let windows: Vec<(usize, usize)> =
            widths.flat_map(|width| [0, 1].map(|offset| (offset, width))).collect();
        let errors: Vec<f64> =
            windows.iter().map(|&(_, width)| self.error(width, before, places.len())).collect();
        let best = |shift: usize, is_free: &dyn Fn(usize, usize) -> bool| {
            let fall = |window| fall(ring, places, shift, window, before);
            let at_once = [0, 1].map(|offset| fall((offset, self.widths[0])));
            let free = windows.iter().zip(&errors).filter(|((offset, width), _)| is_free(*offset, *width));
            let found = free.filter_map(|(&(offset, width), &error)| {
                let fall = fall((offset, width));
                let begins = at_once[offset] >= LEAST_AT_ONCE * fall;
                begins.then_some(Found { offset, width, before, fall, error })
            });
            found.max_by(|one, other| one.errors().total_cmp(&other.errors()))
        };
        let found = best(0, &|_, _| true)?;
        if !(found.fall >= LEAST_FALL && found.errors() >= LEAST_ERRORS) {
            return None;
        }
        // Windows that reach into the same fall see it again.
        let mut low = vec![0.0; ring.count];
        for place in places {
            (place + found.offset..place + found.offset + found.width)
                .for_each(|at| low[at % ring.count] = 1.0);
        }
        let low = Ring::new(&low);
        let near = found.width + found.offset;
        let shifts = ring.count.min(MOST_SHIFTS);
        let elsewhere: Vec<f64> = (0..shifts)
            .map(|number| number * ring.count / shifts)
            .filter(|&shift| shift > near && ring.count - shift > near)
            .map(|shift| {
                let is_free = |offset: usize, width: usize| {
                    places.iter().all(|place| low.sum(place + shift + offset, width) == 0.0)
                };
                best(shift, &is_free).map_or(0.0, |found| found.errors())
            })
            .collect();
        let as_clear = elsewhere.iter().filter(|&&errors| errors >= found.errors()).count();
        let is_rare = as_clear as f64 <= elsewhere.len() as f64 * MOST_ELSEWHERE;
        (is_rare && elsewhere.len() >= LEAST_PLACES).then_some(found)
    }

    /// The standard error of a fall.
    fn error(&self, width: usize, before: usize, events: usize) -> f64 {
        let independent = 1.0 / width as f64 + 1.0 / before as f64;
        self.sigma * (self.inflation * independent / events as f64).sqrt()
    }
}

/// The standard deviation of intervals around their running median, and by how much more a mean of neighbours varies
/// than one of independent values, (1 + r) / (1 - r), where r is the autocorrelation at lag 1 (Bayley & Hammersley
/// 1946, J. R. Stat. Soc. Suppl. 8).
fn variation(relative: &[f64]) -> (f64, f64) {
    let around = |index: usize| {
        let window = index.saturating_sub(RUNNING_HALF)..(index + RUNNING_HALF + 1).min(relative.len());
        relative[index] - robust::median(&relative[window]).unwrap_or(1.0)
    };
    let rest: Vec<f64> = (0..relative.len()).map(around).collect();
    let sigma = robust::sigma(&rest).unwrap_or(0.0).max(1e-6);
    // A dip's edges must not be taken for variation.
    let clipped: Vec<f64> = rest.iter().map(|rest| rest.clamp(-3.0 * sigma, 3.0 * sigma)).collect();
    let variance: f64 = clipped.iter().map(|rest| rest * rest).sum();
    let covariance: f64 = clipped.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alike = if variance > 0.0 { (covariance / variance).clamp(0.0, 0.8) } else { 0.0 };
    (sigma * RUNNING, (1.0 + alike) / (1.0 - alike))
}

/// By which share the mean after all places lies below that before them, all turned by a shift.
fn fall(ring: &Ring, places: &[usize], shift: usize, (offset, width): (usize, usize), before: usize) -> f64 {
    let mean = |width: usize, first: &dyn Fn(usize) -> usize| {
        places.iter().map(|place| ring.sum(first(place + shift), width)).sum::<f64>() / width as f64
    };
    1.0 - mean(width, &|place| place + offset) / mean(before, &|place| place + ring.count - before)
}

impl Effect<'_> {
    /// The finding, and the intervals of low throughput as dips.
    pub fn told(&self, document: &Document, intervals: &Intervals) -> (Finding, Vec<Dip>) {
        let dips: Vec<Dip> = self.low.iter().map(|low| self.dip(intervals, low)).collect();
        let secs = dips.iter().map(|dip| dip.end - dip.start).sum::<f64>() / dips.len() as f64;
        let mean = |ranges: &[Range<usize>]| {
            let sums = ranges.iter().cloned().flatten().fold((0.0, 0.0), |(transactions, secs), index| {
                (transactions + intervals.transactions[index], secs + intervals.secs[index])
            });
            sums.0 / sums.1
        };
        let (tps, tps_otherwise) = (mean(&self.low), mean(&self.usual));
        let p99 = intervals.column(|samples| &samples.latency_p99_ms);
        let p99 = |ranges: &[Range<usize>]| {
            let values = p99.as_ref()?;
            robust::median(&ranges.iter().cloned().flatten().map(|index| values[index]).collect::<Vec<f64>>())
        };
        let latencies = p99(&self.low).zip(p99(&self.usual)).filter(|(low, usual)| low > usual);
        let (images, wal_bytes) = self.written(document, intervals);
        let (low, high) = (self.fall - self.margin, (self.fall + self.margin).min(1.0));
        let mut text = format!(
            "{}: throughput was {} ({} to {}) lower for {}, {} instead of {} tps",
            self.what_happened(document),
            percent(self.fall),
            percent(low),
            percent(high),
            seconds(secs),
            grouped(tps),
            grouped(tps_otherwise)
        );
        if let Some((p99, otherwise)) = latencies {
            text +=
                &format!(", 99th percentile {} instead of {}", milliseconds(p99), milliseconds(otherwise));
        }
        if let Some((images, wal_bytes)) = images.zip(wal_bytes) {
            text += &format!(
                "; {} full-page images in {} MB of WAL",
                grouped(images),
                figure(wal_bytes / MEGABYTE)
            );
        }
        let figures = json!({
            "count": dips.len(),
            "depth": self.fall,
            "depth_low": low,
            "depth_high": high,
            "secs": secs * dips.len() as f64,
            "lost_secs": dips.iter().map(|dip| dip.lost_secs).sum::<f64>(),
            "tps": tps,
            "tps_otherwise": tps_otherwise,
            "latency_p99_ms": latencies.map(|(low, _)| low),
            "latency_p99_otherwise_ms": latencies.map(|(_, usual)| usual),
            "wal_fpi": images,
            "wal_bytes": wal_bytes,
            "events": self.events.iter().map(|event| event.started).collect::<Vec<f64>>(),
            "at": dips.iter().map(|dip| dip.start).collect::<Vec<f64>>(),
            "until": dips.iter().map(|dip| dip.end).collect::<Vec<f64>>(),
            "coincide": [{ "cause": self.events[0].kind }],
        });
        let severity = if self.fall >= WARNING_FALL { Severity::Warning } else { Severity::Notice };
        (finding(severity, Topic::Dip, text + ".", figures, self.advice(images.is_some())), dips)
    }

    /// Whether a cause found beside a dip is this one's doing.
    pub fn is_behind(&self, cause: &CauseKind) -> bool {
        match self.events[0].kind.as_str() {
            "checkpoint" => matches!(cause, CauseKind::FullPageImages | CauseKind::CheckpointWrites),
            _ => is_vacuum(self.events[0]) && *cause == CauseKind::Vacuum,
        }
    }

    fn dip(&self, intervals: &Intervals, low: &Range<usize>) -> Dip {
        Dip {
            intervals: low.clone(),
            start: intervals.starts[low.start],
            end: intervals.ends[low.end - 1],
            depth: self.fall,
            lost_secs: self.fall * intervals.secs[low.clone()].iter().sum::<f64>(),
            open: false,
            told: true,
        }
    }

    /// Full-page images and bytes of WAL of a checkpoint's low intervals; `None` where the former did not rise.
    fn written(&self, document: &Document, intervals: &Intervals) -> (Option<f64>, Option<f64>) {
        if self.events[0].kind != "checkpoint" || self.by_end || is_off(document, "full_page_writes") {
            return (None, None);
        }
        let late = (REPORTED_WITHIN / intervals.typical_secs()).ceil() as usize;
        let sum = |ranges: &[Range<usize>], pick: &dyn Fn(&Samples) -> &Series| {
            let values = intervals.column(pick)?;
            let reported = |range: &Range<usize>| {
                let until = (range.end + late).min(values.len());
                let sum = values[range.start..until].iter().sum::<f64>();
                (sum, intervals.secs[range.start..until].iter().sum::<f64>())
            };
            let all = ranges.iter().map(reported).fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
            Some(all)
        };
        let images = |ranges: &[Range<usize>]| sum(ranges, &|samples: &Samples| &samples.wal_fpi);
        let of_usual: Vec<Range<usize>> = self
            .usual
            .iter()
            .map(|usual| usual.start..usual.end.saturating_sub(late).max(usual.start))
            .collect();
        let rose = images(&self.low).zip(images(&of_usual)).filter(|((low, secs), (usual, of_secs))| {
            *low > 0.0 && low / secs >= LEAST_RATIO_OF_IMAGES * usual / of_secs.max(f64::MIN_POSITIVE)
        });
        let wal_bytes = sum(&self.low, &|samples: &Samples| &samples.wal_bytes).map(|(bytes, _)| bytes);
        (rose.map(|((images, _), _)| images), wal_bytes)
    }

    /// "A checkpoint began at 3.8 s".
    fn what_happened(&self, document: &Document) -> String {
        let time =
            |event: &&Event| if self.by_end { event.ended.unwrap_or(event.started) } else { event.started };
        let times: Vec<String> = self.events.iter().map(|event| seconds(time(event))).collect();
        let nodes: Vec<i32> = self.events.iter().map(|event| event.node).collect();
        let node = if nodes.iter().all(|node| *node == nodes[0]) {
            document.on_node(nodes[0])
        } else {
            String::new()
        };
        let of_what =
            self.events[0].relation.as_ref().map_or(String::new(), |relation| format!(" of {relation}"));
        let of_kind = |one: &str, several: &str| (format!("{one}{of_what}"), format!("{several}{of_what}"));
        let (subject, plural) = match self.events[0].kind.as_str() {
            "checkpoint" => of_kind("A checkpoint", "checkpoints"),
            "autovacuum" => of_kind("An autovacuum", "autovacuums"),
            "vacuum" => of_kind("A VACUUM", "VACUUMs"),
            "autoanalyze" => of_kind("An autoanalyze", "autoanalyzes"),
            "analyze" => of_kind("An ANALYZE", "ANALYZEs"),
            "backup" => of_kind("A base backup", "base backups"),
            "create index" => of_kind("A CREATE INDEX", "CREATE INDEX"),
            "reindex" => of_kind("A REINDEX", "REINDEX"),
            "cluster" => of_kind("A CLUSTER", "CLUSTER"),
            "repack" => of_kind("A REPACK", "REPACK"),
            "vacuum full" => of_kind("A VACUUM FULL", "VACUUM FULL"),
            "standby" => of_kind("A connection of a standby", "connections of standbys"),
            "reload" => of_kind("A reload of the configuration", "reloads of the configuration"),
            kind => of_kind(&format!("An event ({kind})"), &format!("events ({kind})")),
        };
        let did = if self.by_end { "ended" } else { "began" };
        match times.as_slice() {
            [time] => format!("{subject}{node} {did} at {time}"),
            _ => format!("{} {plural}{node} {did} (at {})", times.len(), first_few(&times)),
        }
    }

    fn advice(&self, has_images: bool) -> String {
        let cause = match self.events[0].kind.as_str() {
            "checkpoint" if has_images => CauseKind::FullPageImages,
            "checkpoint" => CauseKind::CheckpointWrites,
            "vacuum" | "autovacuum" => CauseKind::Vacuum,
            "backup" => {
                return "Limit the backup's rate (pg_basebackup --max-rate), take it from a standby, or run again \
                        without it to see its cost."
                    .to_owned();
            }
            "reload" => {
                return "Look in the server's log for the parameters that changed, and compare with a run that had the \
                        same configuration throughout."
                    .to_owned();
            }
            "create index" | "reindex" | "cluster" | "repack" | "vacuum full" => {
                return "It locks the table, and reads or writes all of it: do it before the run, or run again to see its \
                        cost alone."
                    .to_owned();
            }
            "standby" => {
                return "A standby that connects reads the WAL that it has missed, and commits may wait for it \
                        (synchronous_standby_names): connect it before the run."
                    .to_owned();
            }
            _ => {
                return "Plans may have changed with the statistics (bench.statements). Run again on tables that were \
                        analyzed before."
                    .to_owned();
            }
        };
        cause.advice().to_owned()
    }
}
