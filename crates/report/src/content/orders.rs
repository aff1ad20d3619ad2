//! What users of TPC-C look for in a run of workload orders, which is derived from it.

use bench_base::number;
use bench_base::number::{MISSING, ms};
use bench_results::{Document, ScriptSummary};

use super::{Section, Table};

/// What has to be said wherever the workload's figures are.
pub const NOT_COMPARABLE: &str = "Derived from TPC-C; not comparable with published TPC results.";

/// The transactions, in the order of the specification, with their response-time limits in milliseconds: TPC-C 5.2.5.3.
const LIMITS_MS: [(&str, f64); 5] = [
    ("new_order", 5000.0),
    ("payment", 5000.0),
    ("order_status", 5000.0),
    ("delivery", 5000.0),
    ("stock_level", 20_000.0),
];

/// The workloads whose scripts are these transactions.
const FORMS: [&str; 3] = ["orders", "orders_functions", "orders_keyed"];

/// The scripts of the workload in a run.
fn scripts(document: &Document) -> impl Iterator<Item = (&ScriptSummary, &'static str, f64)> {
    document.scripts.iter().filter_map(|script| {
        let name = FORMS.iter().find_map(|form| script.workload.strip_prefix(form)?.strip_prefix('/'))?;
        let (name, limit) = LIMITS_MS.iter().find(|(known, _)| *known == name)?;
        Some((script, *name, *limit))
    })
}

/// New orders per minute as a line of its own.
pub fn nopm_line(document: &Document) -> Option<String> {
    let nopm = number::finite(document.summary.nopm)?;
    Some(format!(
        "new orders per minute (NOPM) = {nopm:.1}; derived from TPC-C, not comparable with published TPC results"
    ))
}

/// Shares and response times of the transactions.
pub fn orders(document: &Document) -> Section {
    let scripts: Vec<_> = scripts(document).collect();
    let all: u64 = scripts.iter().map(|(script, ..)| script.transactions).fold(0, u64::saturating_add);
    let share = |script: &ScriptSummary| (all > 0).then(|| script.transactions as f64 / all as f64);
    let within = |p95_ms: Option<f64>, limit: f64| match number::finite(p95_ms) {
        Some(p95) if p95 <= limit => "yes",
        Some(_) => "no",
        None => MISSING,
    };
    let table = Table::of(&scripts)
        .text("transaction", |(_, name, _)| name)
        .number("share", |(script, ..)| number::percent(share(script)))
        .number("per minute", |(script, ..)| number::tps(script.tps.map(|tps| tps * 60.0)))
        .number("p95 ms", |(script, ..)| ms(script.latency_p95_ms))
        .number("limit ms", |(_, _, limit)| limit)
        .text("within", |(script, _, limit)| within(script.latency_p95_ms, *limit))
        .table();
    let nopm = number::finite(document.summary.nopm);
    let nopm = nopm.map(|nopm| format!("New orders per minute (NOPM): {}. ", number::tps(Some(nopm))));
    let note = format!(
        "{}{NOT_COMPARABLE} NOPM includes new orders that are rolled back intentionally. TPC-C's limits are for the \
         90th percentile.",
        nopm.unwrap_or_default()
    );
    Section::of_table("orders", "Orders", table).with_note(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Body;

    fn document(workloads: &[(&str, u64, f64)]) -> Document {
        let scripts = workloads.iter().map(|(workload, transactions, p95)| ScriptSummary {
            workload: (*workload).to_owned(),
            transactions: *transactions,
            tps: Some(*transactions as f64 / 60.0),
            latency_p95_ms: Some(*p95),
            ..ScriptSummary::default()
        });
        Document { scripts: scripts.collect(), ..Document::default() }
    }

    #[test]
    fn only_the_workload_has_the_section() {
        assert!(
            orders(&document(&[("tpcb", 5, 1.0), ("orders", 5, 1.0), ("orders/mine", 5, 1.0)])).is_empty()
        );
        assert_eq!(nopm_line(&document(&[("tpcb", 5, 1.0)])), None);
    }

    #[test]
    fn transactions_are_held_against_their_limits() {
        let section = orders(&document(&[
            ("orders/new_order", 40, 5000.0),
            ("orders_keyed/payment", 5, 1.0),
            ("orders_functions/stock_level", 5, 20_000.1),
            ("pk_select", 1000, 1.0),
        ]));
        let Body::Table(table) = &section.body else { panic!("a table") };
        let column = |index: usize| table.rows.iter().map(|row| row[index].as_str()).collect::<Vec<_>>();
        assert_eq!(column(0), ["new_order", "payment", "stock_level"]);
        assert_eq!(column(1), [Some(0.8), Some(0.1), Some(0.1)].map(number::percent));
        assert_eq!(column(5), ["yes", "yes", "no"]);
        assert!(section.note.expect("a note").contains("not comparable with published TPC results"));
    }
}
