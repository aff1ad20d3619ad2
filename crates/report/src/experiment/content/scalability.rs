//! How throughput scales with the number of clients.

use bench_base::number;
use bench_base::number::{MISSING, fixed, significant, tps};
use bench_stats::estimate::Estimate;
use bench_stats::scalability::FitVerdict;

use super::variants::{label, without_variants};
use crate::content::{Section, Table};
use crate::experiment::results::{Experiment, VariantScalability};

/// The law fitted to each variant.
pub fn scalability(experiment: &Experiment) -> Section {
    let rows: Vec<[String; 6]> = experiment.scalability.iter().flat_map(rows).collect();
    let table = Table::of(&rows)
        .text("variant", |[variant, ..]| variant)
        .text("verdict", |[_, verdict, ..]| verdict)
        .text("figure", |[_, _, figure, ..]| figure)
        .number("estimate", |[.., estimate, _, _]| estimate)
        .number("low", |[.., low, _]| low)
        .number("high", |[.., high]| high)
        .table();
    let note = "The universal scalability law, tps = λN / (1 + σ(N − 1) + κN(N − 1)) with N clients, fitted to the \
                mean tps of each number of clients; low and high are the bounds of 95 % confidence intervals.";
    Section::of_table("scalability", "Scalability", without_variants(table, &experiment.document))
        .with_note(note.to_owned() + &remarks(&experiment.scalability))
}

/// A row for each figure of a variant, whose name and verdict are said once, in the first of them.
fn rows(fitted: &VariantScalability) -> Vec<[String; 6]> {
    let mut figures = figures(fitted);
    if figures.is_empty() {
        figures.push([MISSING; 4].map(str::to_owned));
    }
    let mut said = [label(&fitted.variant), fitted.law.verdict.as_str().to_owned()];
    let row = |[figure, estimate, low, high]: [String; 4]| {
        let [variant, verdict] = std::mem::take(&mut said);
        [variant, verdict, figure, estimate, low, high]
    };
    figures.into_iter().map(row).collect()
}

/// The names and values of what was fitted.
fn figures(fitted: &VariantScalability) -> Vec<[String; 4]> {
    let row = |name: &str, estimate: Option<Estimate>, show: fn(f64) -> String| {
        let Estimate { value, low, high } = estimate?;
        Some([name.to_owned(), show(value), show(low), show(high)])
    };
    let missing = || MISSING.to_owned();
    let rows = [
        row("λ, tps of one client", fitted.law.lambda, |value| tps(Some(value))),
        row("σ, contention", fitted.law.sigma, significant_or_missing),
        row("κ, crosstalk", fitted.law.kappa, significant_or_missing),
        row("clients at the peak", fitted.law.peak_clients, |value| fixed(Some(value), 1)),
        row("tps at the peak", fitted.law.peak_tps, |value| tps(Some(value))),
        fitted.law.r2.map(|r2| ["R²".to_owned(), fixed(Some(r2), 4), missing(), missing()]),
    ];
    rows.into_iter().flatten().collect()
}

/// Four digits, of what is a number.
fn significant_or_missing(value: f64) -> String {
    number::finite(Some(value)).map_or(MISSING.to_owned(), significant)
}

/// What the verdicts mean, of those that are no fit.
fn remarks(all: &[VariantScalability]) -> String {
    let meanings = [
        (
            FitVerdict::NoPeak,
            "the runs follow the law, but the interval of its peak extends beyond twice the last rung, or tps only \
             falls",
        ),
        (FitVerdict::NotEnoughRungs, "the law needs completed runs with at least four numbers of clients"),
        (FitVerdict::DoesNotFit, "the runs do not follow the law"),
    ];
    let said = meanings.iter().filter(|(verdict, _)| all.iter().any(|one| one.law.verdict == *verdict));
    said.map(|(verdict, meaning)| format!(" {}: {meaning}.", verdict.as_str())).collect()
}
