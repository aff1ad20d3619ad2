//! Which value of a document is out of range, after a CHECK constraint has refused it.

use bench_base::error::{UserError, sqlstate};

use super::tables::{RUN_LOG, columns, joined, qualified, rows_of_lists};
use crate::server::jsonb::StoredJsonb;
use crate::server::spi::{fetch, fetch_all};

/// The error for the first value of a document's table that breaks a constraint of schema/tables/12_ranges.sql; `None` if
/// there is no such value.
///
/// # Errors
/// Those of values that are not of their column's type.
pub fn out_of_range(document: StoredJsonb, table: &str) -> Result<Option<UserError>, UserError> {
    let rules: Vec<(String, String)> = fetch_all(
        "SELECT quote_ident(a.attname), pg_get_expr(k.conbin, k.conrelid) \
         FROM pg_constraint k \
         JOIN pg_attribute a ON a.attrelid = k.conrelid AND k.conname = a.attname || '_range' \
         WHERE k.conrelid = $1::regclass ORDER BY a.attnum",
        &[qualified(table).into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
    )?;
    let rows = if table == RUN_LOG {
        format!("jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}')")
    } else {
        let listed = columns(table)?;
        format!(
            "(SELECT {} FROM (SELECT $1 -> '{table}' AS t) d, {})",
            joined(&listed, |c| format!("{} AS {}", c.read(), c.name)),
            rows_of_lists(&listed),
        )
    };
    let cases: String = (0..)
        .zip(&rules)
        .map(|(place, (column, holds))| {
            let value = format!("left({column}::text, 100)");
            format!(" WHEN NOT ({holds}) THEN ARRAY['{place}', run_id::text, {value}]")
        })
        .collect();
    let sql = format!(
        "SELECT b FROM (SELECT CASE{cases} END AS b FROM {rows} AS x) AS y WHERE b IS NOT NULL LIMIT 1"
    );
    let Some(found) = fetch::<Vec<Option<String>>>(&sql, &[document.into()])? else { return Ok(None) };
    let mut found = found.into_iter().map(Option::unwrap_or_default);
    let mut next = || found.next().unwrap_or_default();
    let (place, run_id, value) = (next(), next(), next());
    let Some((column, holds)) = place.parse::<usize>().ok().and_then(|place| rules.get(place)) else {
        return Ok(None);
    };
    let message = format!("invalid \"{table}\" in the document: {column} of run {run_id} is out of range");
    Ok(Some(
        UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
            .detail(format!("It is {value}, but must satisfy {holds}.")),
    ))
}
