//! How much the values before a point differ from those after it.

/// Values that a segment has at least: two have a spread, the third keeps a single wild value from being a level.
const LEAST_SEGMENT: usize = 3;

/// The point at which a segment falls apart most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Index of the first value after it.
    pub index: usize,
    /// mn / (m + n) times the energy distance of the m values before from the n after.
    pub statistic: f64,
}

/// The split of a segment with the greatest statistic; `None` for less than six values.
///
/// Q = mn / (m + n) × (2 E|X − Y| − E|X − X'| − E|Y − Y'|), the means being over all pairs (Matteson & James 2014,
/// with α = 1; Székely & Rizzo 2005), of the m values before the split and the n after it up to any end:
/// the best end, so that a level that returns does not hide among what follows. Quadratic in the length: from one end
/// to the next, a single value joins.
pub fn split(values: &[f64]) -> Option<Split> {
    let count = values.len();
    // Sums over the pairs from each index up to the end: that of index 0 is of both sides together.
    let mut right = vec![0.0; count];
    // Sums over the pairs up to each index.
    let mut left = vec![0.0; count + 1];
    // By the number of values, what turns a sum over their pairs into half its mean, times that number.
    let shares: Vec<f64> = (0..=count).map(|number| 1.0 / (number as f64 - 1.0)).collect();
    let mut best: Option<Split> = None;
    for (last, joins) in values.iter().enumerate() {
        let mut sum = 0.0;
        for (right, value) in right[..last].iter_mut().zip(&values[..last]).rev() {
            sum += (joins - value).abs();
            *right += sum;
        }
        let end = last + 1;
        let both = right[0];
        left[end] = both;
        // Q (m + n) / 2.
        let scale = end as f64 / 2.0;
        let mut most = best.map_or(f64::NEG_INFINITY, |best| best.statistic * scale);
        for index in LEAST_SEGMENT..=end.saturating_sub(LEAST_SEGMENT) {
            let (left, right) = (left[index], right[index]);
            let (m, n) = (index as f64, (end - index) as f64);
            let scaled = both - left - right - left * shares[index] * n - right * shares[end - index] * m;
            if scaled > most {
                most = scaled;
                best = Some(Split { index, statistic: scaled / scale });
            }
        }
    }
    best
}
