//! Series of values: their parts and their means.

/// The values in so many consecutive parts, whose lengths differ by one at most.
pub fn parts<T>(values: &[T], count: usize) -> impl Iterator<Item = &[T]> {
    (0..count).map(move |part| &values[part * values.len() / count..(part + 1) * values.len() / count])
}

/// Mean and variance of the values' logarithms; the variance is not a number below two.
pub fn of_logarithms(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
    (mean, squares / (count - 1.0))
}

/// The mean of values, of which there is one at least.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
