//! Whether the tables are what the run takes them for: logged, and as large as the script believes.

use bench_base::sentence::{counted, first_few, grouped};
use bench_results::{Document, Finding, Severity, Topic};
use serde_json::{Value, json};

use super::finding::finding;

/// Accounts that tpcb has for each step of scale, as pgbench (`naccounts`).
const ACCOUNTS_PER_SCALE: f64 = 100_000.0;

/// The findings on the fixture.
pub fn findings(document: &Document) -> Vec<Finding> {
    [unlogged(document), scale(document)].into_iter().flatten().collect()
}

fn unlogged(document: &Document) -> Option<Finding> {
    let tables = &document.environment.unlogged_tables;
    let first = tables.first()?;
    let which = match tables.len() {
        1 => format!("{first} is unlogged"),
        count => format!("{} are unlogged ({})", counted(count as u64, "table"), first_few(tables)),
    };
    Some(finding(
        Severity::Notice,
        Topic::Unlogged,
        format!("{which}: changes write no WAL, a crash empties such a table, and no standby has its rows."),
        json!({ "tables": tables }),
        "Load the fixture without the option unlogged to get figures that hold for ordinary tables.",
    ))
}

/// A scale or number of rows that the run sets and the tables do not have.
fn scale(document: &Document) -> Option<Finding> {
    let run = &document.run;
    // Of several fixtures, which one a variable means is not known.
    let &[rows] = run.fixture_rows.as_deref()? else { return None };
    let set = |name: &str| {
        let value = run.variables.get(name)?;
        value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).map(|value| (name.to_owned(), value))
    };
    let is_tpcb = run.fixture.as_deref() == Some("tpcb");
    let scale = set("scale").filter(|_| is_tpcb).map(|set| (set, rows as f64 / ACCOUNTS_PER_SCALE));
    let ((name, asked), loaded) = scale.or_else(|| Some((set("rows")?, rows as f64)))?;
    // Scales that are no whole number were loaded by rows.
    let differs = (asked - loaded).abs() >= 1.0 || asked > loaded;
    if rows <= 0 || !asked.is_finite() || !differs {
        return None;
    }
    let (severity, what) = if asked > loaded {
        (Severity::Warning, "statements draw keys that do not exist, and cost less than they should")
    } else {
        (Severity::Notice, "statements use only a part of the rows, which caches hold more easily")
    };
    let shown =
        |value: f64| if value.fract() == 0.0 { grouped(value) } else { Value::from(value).to_string() };
    Some(finding(
        severity,
        Topic::Scale,
        format!(
            "The run set the variable {name} to {}, but the fixture was loaded with {name} {}: {what}.",
            shown(asked),
            shown(loaded)
        ),
        json!({ "variable": name, "set": asked, "loaded": loaded }),
        format!(
            "Leave {name} out of variables: it follows the fixture. Or load the fixture as large as the run needs."
        ),
    ))
}
