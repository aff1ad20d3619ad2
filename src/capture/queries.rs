//! The queries of feeders: rows of a relation as values of the parameters that meet it.

use bench_core::error::UserError;

use super::columns::{Relation, is_indexed};
use super::feeders::{Plan, column};
use crate::engine::parameters::{How, Meeting};

/// What a statement's feeders can be made to do, so that its calls return as many rows as were captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Share of the calls whose values are drawn from all distinct ones alike, not from rows; the values of the first
    /// occurrence.
    pub distinct: f64,
    /// Rows between the two ends of a range.
    pub width: u64,
    /// Rows beyond a value that bounds a column to one side.
    pub beyond: Option<u64>,
    /// Characters before the % of a pattern.
    pub pattern: u32,
    /// Rows that LIMIT lets through.
    pub limit: u64,
    /// Share of the calls that find nothing: the values of the first occurrence are NULL.
    pub misses: f64,
    /// Elements of an array.
    pub array: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self { distinct: 0.0, width: 10, beyond: None, pattern: 3, limit: 10, misses: 0.0, array: 5 }
    }
}

impl Shape {
    /// With ranges of another size; `None` where that is the same.
    pub fn scaled(&self, factor: f64) -> Option<Self> {
        let times = |size: u64| ((size as f64 * factor).round() as u64).max(1);
        let scaled = Self { width: times(self.width), beyond: self.beyond.map(times), ..self.clone() };
        (scaled != *self).then_some(scaled)
    }

    /// Whether the feeder of an occurrence has weights.
    pub fn is_weighted(&self, occurrence: usize) -> bool {
        occurrence == 0 && (self.distinct > 0.0 && self.distinct < 1.0 || self.misses > 0.0)
    }
}

/// Rows that are drawn from a relation at most, before a feeder keeps a choice of them.
const ENOUGH: f64 = 200_000.0;

/// Rows that are drawn where each one takes a look at others.
const FEW: f64 = 5_000.0;

/// The query of an occurrence's feeder; `None` where nothing meets it.
pub fn query_of(plan: &Plan, occurrence: usize, shape: &Shape) -> Result<Option<String>, UserError> {
    let indexes = plan.parameters(occurrence);
    if indexes.is_empty() {
        return Ok(None);
    }
    let met: Vec<(usize, &Meeting)> = indexes
        .iter()
        .filter_map(|&index| plan.analysed.parameters[index].meeting.as_ref().map(|meeting| (index, meeting)))
        .collect();
    let relation = &plan.relations[occurrence];
    let mut expressions: Vec<&str> = met.iter().map(|(_, meeting)| meeting.expression.as_str()).collect();
    expressions.sort_unstable();
    expressions.dedup();
    let inner = |expression: &str| {
        let place = expressions.iter().position(|&other| other == expression).unwrap_or_default();
        format!("e{}", place + 1)
    };
    let is_looking = met.iter().any(|(_, m)| m.row > 0 || m.how == How::Array || m.how == How::Unequal)
        || partner(&met).is_some();
    let few = if is_looking { FEW } else { ENOUGH };
    let list: Vec<String> =
        expressions.iter().map(|expression| format!("{expression} AS {}", inner(expression))).collect();
    let mut conditions: Vec<String> = Vec::new();
    for (_, meeting) in met.iter().filter(|(_, m)| !matches!(m.how, How::Insert | How::Set)) {
        let condition = format!("{} IS NOT NULL", meeting.expression);
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let filter =
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let from = |distinct: &str, sample: String| {
        format!("SELECT {distinct}{} FROM {} AS r{sample}{filter}", list.join(", "), relation.name)
    };
    let bounded = met.iter().find(|(_, m)| matches!(m.how, How::Above | How::Below));
    let rows = match (bounded, shape.beyond) {
        // A hundred rows around the one with so many beyond it.
        (Some((_, meeting)), Some(beyond)) => format!(
            "{} ORDER BY {}{} OFFSET {} LIMIT 100",
            from("", String::new()),
            meeting.expression,
            if (meeting.how == How::Above) != meeting.descends { " DESC" } else { "" },
            beyond.saturating_sub(50)
        ),
        _ => from("", sample(relation, few)),
    };
    let rows = if is_looking && shape.beyond.is_none() { format!("{rows} LIMIT {few}") } else { rows };
    let outer: Vec<String> = met
        .iter()
        .map(|&(index, meeting)| {
            Ok(format!(
                "{} AS {}",
                outer_of(&met, index, meeting, &inner(&meeting.expression), relation, shape)?,
                column(index)
            ))
        })
        .collect::<Result<_, UserError>>()?;
    let outer = outer.join(", ");
    let window = if is_looking { " WINDOW w AS (ORDER BY pg_catalog.random())" } else { "" };
    let distinct = format!("{} LIMIT {ENOUGH}", from("DISTINCT ", sample(relation, 10.0 * ENOUGH)));
    let parts = Parts { outer, window, rows, distinct };
    if shape.is_weighted(occurrence) {
        return Ok(Some(parts.weighted(&plan.columns(occurrence), shape)));
    }
    let is_distinct = occurrence == 0 && shape.distinct >= 1.0;
    Ok(Some(parts.whole(if is_distinct { &parts.distinct } else { &parts.rows })))
}

/// What a feeder's query is put together of.
struct Parts {
    /// The list of its columns, over the drawn rows `s`.
    outer: String,
    window: &'static str,
    /// The query that draws rows.
    rows: String,
    /// That which draws distinct values.
    distinct: String,
}

impl Parts {
    fn whole(&self, drawn: &str) -> String {
        format!("SELECT {} FROM ({drawn}) s{}", self.outer, self.window)
    }

    /// Rows, distinct values and NULLs, each with its share, however many rows it has.
    fn weighted(&self, columns: &[(String, String)], shape: &Shape) -> String {
        let one = |drawn: &str, share: f64| {
            format!(
                "(SELECT {}, {share}::pg_catalog.float8 / pg_catalog.count(*) OVER () AS weight FROM ({drawn}) s{})",
                self.outer, self.window
            )
        };
        let hits = 1.0 - shape.misses;
        let mut parts = Vec::new();
        // A row's weight is above 0.
        if shape.distinct < 1.0 && hits > 0.0 {
            let rows = format!("SELECT * FROM ({}) r LIMIT {ENOUGH}", self.rows);
            parts.push(one(&rows, (1.0 - shape.distinct) * hits));
        }
        if shape.distinct > 0.0 && hits > 0.0 {
            parts.push(one(&self.distinct, shape.distinct * hits));
        }
        if shape.misses > 0.0 {
            let nulls: Vec<String> =
                columns.iter().map(|(name, sql_type)| format!("NULL::{sql_type} AS {name}")).collect();
            let misses = shape.misses;
            parts.push(format!("(SELECT {}, {misses}::pg_catalog.float8 AS weight)", nulls.join(", ")));
        }
        parts.join(" UNION ALL ")
    }
}

fn sample(relation: &Relation, rows: f64) -> String {
    // Blocks are sampled, and those at random: twice as many, so that there are enough.
    if !relation.is_table || relation.rows <= 2.0 * rows {
        return String::new();
    }
    format!(" TABLESAMPLE SYSTEM ({:.4})", (200.0 * rows / relation.rows).clamp(0.0001, 100.0))
}

/// The two ends of a range over one expression: the parameters below and above.
fn partner(met: &[(usize, &Meeting)]) -> Option<(usize, usize)> {
    met.iter().find_map(|(low, one)| {
        let other = |how: How, (_, m): &&(usize, &Meeting)| m.how == how && m.expression == one.expression;
        let high = met.iter().find(|pair| other(How::Below, pair))?.0;
        (one.how == How::Above).then_some((*low, high))
    })
}

/// A parameter's value, over the columns of the drawn rows.
fn outer_of(
    met: &[(usize, &Meeting)],
    index: usize,
    meeting: &Meeting,
    inner: &str,
    relation: &Relation,
    shape: &Shape,
) -> Result<String, UserError> {
    let next = |row: usize| format!("pg_catalog.lead({inner}, {row}, {inner}) OVER w");
    Ok(match meeting.how {
        How::Array => format!(
            "pg_catalog.array_agg({inner}) OVER (w ROWS BETWEEN CURRENT ROW AND {} FOLLOWING)",
            shape.array.max(1) - 1
        ),
        How::Unequal => next(meeting.row + 1),
        How::Like => format!("pg_catalog.\"left\"({inner}::pg_catalog.text, {}) || '%'", shape.pattern),
        How::Below if partner(met).is_some_and(|(_, high)| high == index) => {
            let expression = &meeting.expression;
            let beyond = format!(
                "(SELECT {expression} FROM {0} AS r WHERE {expression} >= s.{inner} ORDER BY {expression} OFFSET {1} LIMIT 1)",
                relation.name,
                shape.width.max(1) - 1
            );
            let last = format!("(SELECT pg_catalog.max({expression}) FROM {} AS r)", relation.name);
            if is_indexed(relation, expression)? || relation.rows < 20_000.0 {
                format!("coalesce({beyond}, {last})")
            } else {
                // Without an index: neighbours among those that were drawn.
                format!("pg_catalog.lead({inner}, 1, {inner}) OVER (ORDER BY {inner})")
            }
        }
        _ if meeting.row > 0 => next(meeting.row),
        _ => inner.to_owned(),
    })
}
