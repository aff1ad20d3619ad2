//! Ratios with their intervals, one under the other.

use bench_base::number::{finite, fixed};
use plotters::prelude::*;

use super::axis::Axis;
use super::frame::{Chart, Panel, svg};
use super::hover::with_points;
use super::palette::{GREEN, GREY, INDIGO, Ink, RED};

/// A ratio.
pub struct ForestRow<'a> {
    /// What it is of.
    pub name: String,
    /// Its value and the ends of its interval.
    pub ratio: [Option<f64>; 3],
    pub verdict: &'a str,
}

/// The colours of verdicts.
const VERDICTS: [(&str, Ink); 5] =
    [("faster", GREEN), ("slower", RED), ("same", INDIGO), ("inconclusive", GREY), ("fails", RED)];

/// The colour of a verdict.
fn ink(verdict: &str) -> Ink {
    VERDICTS.iter().find(|(name, _)| *name == verdict).map_or(GREY, |(_, ink)| *ink)
}

/// The rows from above, and the margin around 1; with what the colours are. `None` without any ratio.
pub fn forest(label: &str, given: &[ForestRow], margin: f64) -> Option<(String, Vec<(Ink, String)>)> {
    let positive = |ratio: Option<f64>| finite(ratio).filter(|ratio| *ratio > 0.0).map(f64::log10);
    let ratio = |row: &ForestRow| positive(row.ratio[0]);
    let rows: Vec<(f64, &ForestRow)> =
        given.iter().rev().enumerate().map(|(place, row)| ((place + 1) as f64, row)).collect();
    let known: Vec<f64> = given.iter().flat_map(|row| row.ratio).filter_map(positive).collect();
    given.iter().find_map(ratio)?;
    let margin = [(1.0 - margin).max(0.1).log10(), (1.0 + margin).log10()];
    let low = known.iter().chain(&margin).copied().fold(0.0, f64::min);
    let high = known.iter().chain(&margin).copied().fold(0.0, f64::max);
    let x = Axis::of_ratios(10f64.powf(low), 10f64.powf(high));
    let names = rows.iter().map(|(place, row)| (*place, row.name.clone()));
    let y = Axis { low: 0.4, high: rows.len() as f64 + 0.6, ticks: names.collect() };
    let (bottom, top) = (y.low, y.high);
    let draw = |chart: &mut Chart| {
        let band = GREY.color().mix(0.45).filled();
        chart.draw_series([Rectangle::new([(margin[0], top), (margin[1], bottom)], band)])?;
        let one = INDIGO.color().stroke_width(2);
        chart.draw_series([PathElement::new(vec![(0.0, bottom), (0.0, top)], one)])?;
        rows.iter().try_for_each(|(place, row)| {
            let color = ink(row.verdict).color();
            let ends = positive(row.ratio[1]).zip(positive(row.ratio[2]));
            chart.draw_series(ends.map(|(low, high)| {
                PathElement::new(vec![(low, *place), (high, *place)], color.stroke_width(6))
            }))?;
            chart.draw_series(ratio(row).map(|ratio| Circle::new((ratio, *place), 10, color.filled())))?;
            Ok(())
        })
    };
    let svg = svg(label, &x, true, &[Panel { title: None, y: y.clone(), draw: &draw }])?;
    let titles = rows.iter().filter_map(|(place, row)| {
        let [value, low, high] = row.ratio.map(|value| fixed(value, 3));
        Some((ratio(row)?, *place, format!("{} {value} [{low}, {high}]: {}", row.name, row.verdict)))
    });
    let svg = with_points(&svg, &x, &y, &titles.collect::<Vec<_>>());
    let is_there = |verdict: &str| given.iter().any(|row| row.verdict == verdict);
    let legend = VERDICTS.iter().filter(|(verdict, _)| is_there(verdict));
    Some((svg, legend.map(|(verdict, ink)| (*ink, (*verdict).to_owned())).collect()))
}
