//! Values that captures have kept: rows of bench.captured_rows.

use bench_base::error::UserError;
use bench_model::feeder::Feeder;
use bench_model::part::KeptRows;
use pgrx::{JsonB, pg_sys};
use serde_json::Value;

use super::as_owner;
use crate::server::roles::name_of;
use crate::server::spi::{fetch_all, quote_identifier, quote_literal, run};

/// The SELECT of a feeder over kept values: `columns` are names of variables and, as the server writes them, their types.
pub fn select_captured_rows(
    workload: &str,
    prefix: &str,
    columns: &[(String, String)],
    weighted: bool,
) -> String {
    let mut list = kept_values(columns);
    list.extend(weighted.then(|| "weight".to_owned()));
    format!(
        "SELECT {} FROM bench.captured_rows WHERE workload = {} AND prefix = {} ORDER BY row_number",
        list.join(", "),
        quote_literal(workload),
        quote_literal(prefix)
    )
}

/// Whether values of a type are written as names of relations. Feeders have OIDs instead: what a relation's name is depends on
/// the session that writes it.
pub fn names_relations(sql_type: &str) -> bool {
    matches!(sql_type, "regclass" | "pg_catalog.regclass")
}

/// Values of kept ones, which the column `row` has as texts: `columns` are their names and, as the server writes them, types.
pub fn kept_values(columns: &[(String, String)]) -> Vec<String> {
    let value = |(name, sql_type): &(String, String)| {
        let text = format!("(row ->> {})", quote_literal(name));
        let value = match names_relations(sql_type) {
            // Of a name or of an OID: a cast of a text takes a name alone.
            true => format!("pg_catalog.regclassin({text}::pg_catalog.cstring)::pg_catalog.oid"),
            false => format!("{text}::{sql_type}"),
        };
        format!("{value} AS {}", quote_identifier(name))
    };
    columns.iter().map(value).collect()
}

/// Keeps values of a workload's parameters: each row an object by the names of variables, with its weight.
pub fn put_captured_rows(
    workload: &str,
    prefix: &str,
    rows: Vec<(Option<f64>, Value)>,
) -> Result<(), UserError> {
    let weights: Vec<Option<f64>> = rows.iter().map(|(weight, _)| *weight).collect();
    let values: Vec<String> = rows.into_iter().map(|(_, row)| row.to_string()).collect();
    as_owner(|| {
        run(
            "INSERT INTO bench.captured_rows (workload, prefix, row_number, weight, row) \
             SELECT $1, $2, v.number, v.weight, v.row::jsonb \
             FROM ROWS FROM (unnest($3), unnest($4)) WITH ORDINALITY AS v (weight, row, number)",
            &[workload.into(), prefix.into(), weights.into(), values.into()],
        )
        .map(drop)
    })
}

/// The values that a capture has kept for feeders of a workload, as far as this role may read them.
pub fn kept_rows(workload: &str, feeders: &[Feeder]) -> Result<Vec<KeptRows>, UserError> {
    let sql = "SELECT weight, row FROM bench.captured_rows \
               WHERE workload = $1 AND prefix = $2 ORDER BY row_number";
    let mut kept = Vec::new();
    for Feeder { prefix, .. } in feeders {
        let rows = fetch_all(sql, &[workload.into(), prefix.as_str().into()], |row| {
            Ok((row.get::<f64>(1)?, row.get::<JsonB>(2)?.map_or(Value::Null, |row| row.0)))
        })?;
        if !rows.is_empty() {
            kept.push(KeptRows { workload: workload.to_owned(), prefix: prefix.clone(), rows });
        }
    }
    Ok(kept)
}

/// Puts another node's kept values where feeders look for them, for as long as the (sub)transaction lasts, which is to be
/// rolled back. Only this role and its members see them.
pub fn lend_captured_rows(role: pg_sys::Oid, kept: Vec<KeptRows>) -> Result<(), UserError> {
    for KeptRows { workload, prefix, rows } in kept {
        as_owner(|| {
            run(
                "INSERT INTO bench.workloads (name, owner, script, owner_oid) VALUES ($1, $2, '', $3) \
                 ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, owner_oid = EXCLUDED.owner_oid",
                &[workload.as_str().into(), name_of(role).into(), role.into()],
            )?;
            let sql = "DELETE FROM bench.captured_rows WHERE workload = $1 AND prefix = $2";
            run(sql, &[workload.as_str().into(), prefix.as_str().into()])
        })?;
        put_captured_rows(&workload, &prefix, rows)?;
    }
    Ok(())
}
