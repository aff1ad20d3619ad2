//! Middles, spreads and slopes that a few wild values cannot move.
//!
//! A dip must not hide itself by widening the spread that it is measured in, nor bend the line that it is measured
//! from: up to half of the values, or 29 % for the line, may lie anywhere.

/// The deviation's ratio to the median absolute deviation under a normal distribution, 1 / Φ⁻¹(3/4)
/// (Rousseeuw & Croux 1993, "Alternatives to the median absolute deviation", JASA 88).
const MAD_TO_SIGMA: f64 = 1.4826;

/// Blocks that a long series is cut into for its line: pairs of them are few, and a block's median is steady.
const LINE_BLOCKS: usize = 48;

/// The median; `None` without values. Those that are no numbers sort to an end.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    Some(lower + (upper - lower) / 2.0)
}

/// The standard deviation, judged by the median absolute deviation from the median; `None` without values.
pub fn sigma(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(median(&deviations)? * MAD_TO_SIGMA)
}

/// A straight line over the index of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendLine {
    /// Its value at index 0.
    pub start: f64,
    /// Its rise from one index to the next.
    pub slope: f64,
}

impl TrendLine {
    /// Its value at an index.
    pub fn at(&self, index: usize) -> f64 {
        self.start + self.slope * index as f64
    }
}

/// The line of Theil and Sen (Sen 1968, JASA 63): its slope is the median of the slopes of all pairs, its height
/// the median of what is then left. A long series is first cut into blocks, each of which stands for its median.
/// `None` without values.
pub fn line(values: &[f64]) -> Option<TrendLine> {
    let block = values.len().div_ceil(LINE_BLOCKS).max(1);
    let points: Vec<(f64, f64)> = values
        .chunks(block)
        .enumerate()
        .filter_map(|(number, chunk)| {
            let middle = (number * block) as f64 + (chunk.len() - 1) as f64 / 2.0;
            Some((middle, median(chunk)?))
        })
        .collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (number, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[..number].iter().map(|(before_x, before_y)| (y - before_y) / (x - before_x)));
    }
    let slope = median(&slopes).unwrap_or(0.0);
    let heights: Vec<f64> =
        values.iter().enumerate().map(|(index, value)| value - slope * index as f64).collect();
    Some(TrendLine { start: median(&heights)?, slope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn wild_values_do_not_move_the_spread() {
        let mut values: Vec<f64> = (0..100).map(|index| f64::from(index % 10)).collect();
        let before = sigma(&values).unwrap();
        values[..20].fill(1e9);
        assert!(sigma(&values).unwrap() < before * 2.0);
    }

    #[test]
    fn a_line_is_found_under_a_quarter_of_wild_values() {
        for length in [3, 40, 1000] {
            let mut values: Vec<f64> = (0..length).map(|index| 100.0 + 0.5 * f64::from(index)).collect();
            let wild = values.len() / 4;
            values[..wild].fill(0.0);
            let found = line(&values).unwrap();
            assert!((found.slope - 0.5).abs() < 0.05, "{length}: {found:?}");
            assert!((found.at(values.len() - 1) / values[values.len() - 1] - 1.0).abs() < 0.05);
        }
    }
}
