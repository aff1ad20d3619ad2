//! Where a series becomes steady.
//!
//! MSER, the marginal standard error rule: leave out those first values whose leaving makes the mean of the rest
//! surest (White 1997, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69;
//! of means of five, MSER-5: White, Cobb & Spratt 2000, "A comparison of five steady-state truncation heuristics for
//! simulation", Proc. Winter Simulation Conference; Spratt 1998). Both found it the best of those compared.

/// Values per batch.
const BATCH: usize = 5;
/// Batches from which on MSER-5 has enough of them; below, single values are taken, as White did first.
const LEAST_BATCHES: usize = 20;
/// Values, or means, below which there is nothing to judge by.
const LEAST_MEANS: usize = 10;

/// How many of the first values to leave out, at most half; 0 where there are less than 10. Near the end the rule
/// finds a few values that are alike by chance, so that cuts in the second half are not looked at (Hoad, Robinson &
/// Davies 2010, "Automating warm-up length estimation", J. Oper. Res. Soc. 61).
pub fn truncation(values: &[f64]) -> usize {
    let batch = if values.len() >= BATCH * LEAST_BATCHES { BATCH } else { 1 };
    let means: Vec<f64> =
        values.chunks_exact(batch).map(|chunk| chunk.iter().sum::<f64>() / batch as f64).collect();
    if means.len() < LEAST_MEANS {
        return 0;
    }
    // From the last to the first: mean and squares of what is kept (Welford's recurrence).
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let (mut least, mut best) = (f64::INFINITY, 0);
    for (index, value) in means.iter().enumerate().rev() {
        count += 1.0;
        let difference = value - mean;
        mean += difference / count;
        squares += difference * (value - mean);
        let error = squares / (count * count);
        // At equal errors the one that keeps more.
        if index * 2 <= means.len() && error <= least {
            (least, best) = (error, index);
        }
    }
    best * batch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100, shaken by ±1, after `low` values of 50.
    fn rising(low: usize, length: usize) -> Vec<f64> {
        (0..length).map(|index| if index < low { 50.0 } else { 99.0 + ((index * 7) % 3) as f64 }).collect()
    }

    #[test]
    fn leaves_out_the_rise() {
        assert_eq!(truncation(&rising(0, 60)), 0);
        assert_eq!(truncation(&rising(7, 60)), 7);
        // With batches of five, the batch that holds the seventh value is cut off whole.
        assert_eq!(truncation(&rising(7, 200)), 10);
    }

    #[test]
    fn leaves_out_half_at_most() {
        assert!(truncation(&rising(40, 60)) <= 30);
        assert_eq!(truncation(&[1.0; 9]), 0);
        assert_eq!(truncation(&[]), 0);
    }
}
