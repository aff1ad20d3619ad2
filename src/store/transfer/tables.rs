//! The tables that a run's results are in, with their columns as the catalog has them, and the version of the document that
//! has these tables.

use bench_base::error::UserError;

use crate::server::spi::{fetch, fetch_all};

/// The version of the document that bench.export makes and bench.import reads. Tables and columns may be added within
/// a version: readers pass over what they do not know, and what is missing is NULL or has its default.
pub const FORMAT_VERSION: i32 = 1;

/// The table with one row per run. Its `segment`, `coordinator_pid`, `role` and `sweep_id` are this server's own.
pub const RUN_LOG: &str = "run_log";

/// A table of results with its schema: what only views show is internal.
pub fn qualified(table: &str) -> String {
    let schema = if table.ends_with("_log") { "bench_internal" } else { "bench" };
    format!("{schema}.{table}")
}

/// The other tables with rows of a run, by the column run_id: what is kept of a run is in these and in [`RUN_LOG`], and goes with it.
/// A document has an object for each, under its name, with a list for each column.
pub const RESULT_TABLES: [&str; 17] = [
    "samples",
    "warmup_samples",
    "latencies",
    "transactions",
    "standbys",
    "error_log",
    "script_log",
    "statement_log",
    "wait_log",
    "event_log",
    "relation_log",
    "audit_log",
    "call_log",
    "duel_log",
    "duel_statement_log",
    "duel_wait_log",
    "node_log",
];

/// A column of a table of results.
pub struct Column {
    /// Quoted where it has to be.
    pub name: String,
    /// As SQL writes it.
    pub sql_type: String,
    /// The expression of its default.
    pub default: Option<String>,
}

impl Column {
    /// The value in a row `x` of texts, as [`rows_of_lists`] has them: arrays are lists of JSON.
    pub fn read(&self) -> String {
        let Self { name, sql_type, .. } = self;
        match sql_type.strip_suffix("[]") {
            None => format!("x.{name}::{sql_type}"),
            Some(sql_type) => format!(
                "CASE WHEN x.{name} IS NOT NULL THEN ARRAY(SELECT e.e::{sql_type} FROM \
                     jsonb_array_elements_text(x.{name}::jsonb) WITH ORDINALITY AS e (e, place) ORDER BY e.place) END"
            ),
        }
    }
}

/// A table's columns, in their order.
pub fn columns(table: &str) -> Result<Vec<Column>, UserError> {
    fetch_all(
        "SELECT quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), \
                pg_get_expr(d.adbin, d.adrelid) \
         FROM pg_attribute a \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped \
         ORDER BY a.attnum",
        &[qualified(table).into()],
        |row| {
            Ok(Column {
                name: row.get::<String>(1)?.unwrap_or_default(),
                sql_type: row.get::<String>(2)?.unwrap_or_default(),
                default: row.get::<String>(3)?,
            })
        },
    )
}

/// What there is of each column, with commas between.
pub fn joined(columns: &[Column], piece: impl Fn(&Column) -> String) -> String {
    columns.iter().map(piece).collect::<Vec<_>>().join(", ")
}

/// The rows `x` of a document's table, an object `d.t` with a list for each column, as texts: an item of FROM.
pub fn rows_of_lists(columns: &[Column]) -> String {
    let lists = joined(columns, |c| format!("jsonb_array_elements_text(d.t -> '{}')", c.name));
    format!("ROWS FROM ({lists}) AS x ({})", joined(columns, |c| c.name.clone()))
}

/// The columns of a table's primary key, in their order, as ORDER BY takes them.
pub fn key(table: &str) -> Result<String, UserError> {
    let key = fetch::<String>(
        "SELECT string_agg('y.' || quote_ident(a.attname), ', ' ORDER BY k.place) \
         FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place), \
             pg_attribute a \
         WHERE i.indrelid = $1::regclass AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.attnum",
        &[qualified(table).into()],
    )?;
    Ok(key.unwrap_or_else(|| "y".to_owned()))
}
