//! Throughput over time in one line of blocks.

use bench_base::number::{duration, finite, tps};
use bench_results::Samples;

use crate::downsample::{envelopes, per_column};

/// How many blocks there are at most.
const COLUMNS: usize = 60;
/// From nothing to all.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The line, with its scale under it; `None` without any interval.
pub fn of_tps(samples: &Samples) -> Option<Vec<String>> {
    let per_column = per_column(samples.tps.len(), COLUMNS);
    let thinned = envelopes(&samples.tps, per_column);
    let low = thinned.iter().flatten().map(|envelope| envelope.low).reduce(f64::min)?;
    let high = thinned.iter().flatten().map(|envelope| envelope.high).reduce(f64::max)?;
    let blocks = thinned.iter().map(|column| column.map_or(' ', |envelope| block(envelope.mean, high)));
    let line: String = blocks.collect();
    let interval = samples.secs.iter().filter_map(|secs| finite(*secs)).next();
    let interval = interval.map(|secs| duration((secs * per_column as f64 * 10.0).round() / 10.0));
    let each = interval.map(|interval| format!(", a block for each {interval}")).unwrap_or_default();
    let scale = format!(
        "   tps from 0 to {}, min {}, max {}{each}",
        tps(Some(high)),
        tps(Some(low)),
        tps(Some(high))
    );
    Some(vec![String::new(), format!("  {line}"), scale[1..].to_owned()])
}

/// The block for a value of a scale from 0: a dip to half the throughput is to look like one.
fn block(value: f64, high: f64) -> char {
    let share = if high > 0.0 { (value / high).clamp(0.0, 1.0) } else { 0.0 };
    BLOCKS[((share * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_looks_like_one() {
        let tps = vec![Some(100.0), Some(50.0), None, Some(0.0), Some(100.0)];
        let samples = Samples { elapsed: vec![None; 5], secs: vec![Some(1.0); 5], tps, ..Samples::default() };
        let lines = of_tps(&samples).unwrap();
        assert_eq!(lines[1], "  █▅ ▁█");
        assert_eq!(lines[2], "  tps from 0 to 100.0, min 0.0, max 100.0, a block for each 1 s");
    }

    #[test]
    fn minutes_are_thinned_by_means() {
        let tps: Vec<_> = (0..6_000).map(|i| Some(if i % 100 == 0 { 0.0 } else { 100.0 })).collect();
        let samples = Samples { secs: vec![Some(1.0); 6_000], tps, ..Samples::default() };
        let lines = of_tps(&samples).unwrap();
        assert_eq!(lines[1].trim(), "▇".repeat(60).replace('▇', "█"));
        assert!(lines[2].contains("min 0.0, max 100.0, a block for each 100 s"), "{}", lines[2]);
    }

    #[test]
    fn nothing_of_nothing() {
        assert_eq!(of_tps(&Samples::default()), None);
        assert_eq!(block(0.0, 0.0), '▁');
    }
}
