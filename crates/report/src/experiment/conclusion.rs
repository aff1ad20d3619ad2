//! Which side is faster, in one sentence.

use bench_base::number::{MISSING, fixed, percent};
use bench_questions::comparison::{ComparisonLine, Difference};

use crate::sanitize::{cut, one_line};

/// How long a name may be.
pub const NAME: usize = 60;

/// The names of metrics where they stand for the metric.
pub fn metric(line: &ComparisonLine) -> String {
    let name = match line.metric.as_str() {
        "tps" => "TPS",
        "latency_avg_ms" => "average",
        "server_cpu_us" => "CPU",
        name => name.strip_prefix("latency_").and_then(|name| name.strip_suffix("_ms")).unwrap_or(name),
    };
    match &line.script {
        Some(script) => format!("{name} of {}", cut(&one_line(script), NAME)),
        None => name.to_owned(),
    }
}

/// The ratio from which on a figure is so many times another one: percentages of hundreds are hard to read.
const TIMES: f64 = 3.0;

/// How far a ratio is from 1, in percent with its sign, or how many times it is.
pub fn change(ratio: f64) -> String {
    if !(TIMES..f64::INFINITY).contains(&ratio) {
        return percentage(ratio);
    }
    format!("{} times", fixed(Some(ratio), if ratio < 10.0 { 1 } else { 0 }))
}

/// How far a ratio is from 1, in percent, with its sign.
pub fn percentage(ratio: f64) -> String {
    let change = fixed(Some((ratio - 1.0) * 100.0), 1);
    match change.strip_prefix('-') {
        Some(less) => format!("−{less} %"),
        None if change == MISSING => change,
        None => format!("+{change} %"),
    }
}

/// What the candidate is, where one thing only tells it from the baseline: in parentheses, with a blank before it.
pub fn arm(differences: &[Difference]) -> String {
    let [Difference { what, baseline, candidate }] = differences else { return String::new() };
    let what = what.strip_prefix("server setting ").or(what.strip_prefix("setting ")).unwrap_or(what);
    let value = |value: &Option<String>| cut(&one_line(value.as_deref().unwrap_or("the default")), NAME);
    format!(" ({} {} instead of {})", cut(&one_line(what), NAME), value(candidate), value(baseline))
}

/// The verdict on TPS with its interval, in one sentence, with what the candidate is ([`arm`]). `runs` are those of the baseline
/// and of the candidate.
pub fn conclusion(
    line: Option<&ComparisonLine>,
    margin: f64,
    paired: bool,
    runs: (usize, usize),
    arm: &str,
) -> String {
    let undecided = format!("It is undecided whether the candidate{arm} is faster or slower");
    let runs = match (paired, runs) {
        (true, (1, _)) => "1 pair of runs".to_owned(),
        (true, (pairs, _)) => format!("{pairs} pairs of runs"),
        (false, (1, candidate)) => format!("1 run against {candidate}"),
        (false, (baseline, candidate)) => format!("{baseline} runs against {candidate}"),
    };
    let Some(line) = line else { return format!("{undecided}.") };
    let interval = line
        .ratio_low
        .zip(line.ratio_high)
        .map(|(low, high)| format!("95 % interval: {} to {}; {runs}", change(low), change(high)));
    let Some(ratio) = line.ratio.filter(|ratio| ratio.is_finite()) else {
        return format!("{undecided}: there is no ratio of TPS ({runs}).");
    };
    let Some(interval) = interval else {
        // The only verdict that needs no interval: nothing is done any more.
        return match line.verdict.as_str() {
            "slower" => format!("The candidate{arm} is slower: its TPS is 0 ({runs})."),
            _ => format!("{undecided}: its TPS differs by {}, without an interval ({runs}).", change(ratio)),
        };
    };
    let differs = match ratio < TIMES {
        true => format!("its TPS differs by {} ({interval})", change(ratio)),
        false => format!("its TPS is {} the baseline's ({interval})", change(ratio)),
    };
    match line.verdict.as_str() {
        verdict @ ("faster" | "slower") => format!("The candidate{arm} is {verdict}: {differs}."),
        "same" => format!(
            "The candidate{arm} is as fast as the baseline, within the margin of {}: {differs}.",
            percent(Some(margin)),
        ),
        _ => format!("{undecided}: {differs}."),
    }
}
