//! SQL of feeders, which draws rows of a relation as values of the parameters that meet it, and of values without a relation.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::replay_plan::{
    FeederShape, ReplayPlan, SampledRelation, SampledValues, SamplingStrategy, column_name, is_indexed,
    read_inserted_column,
};
use crate::driver::parameters::{How, Meeting, TypeShape, shape_of};
use crate::server::spi::fetch;
use crate::store::names_relations;

/// Most rows that are drawn from a relation; a feeder keeps some of them.
const MAX_ROWS: f64 = 200_000.0;

/// Most rows that are drawn where the value of each takes a look-up of other rows.
const MAX_LOOKUP_ROWS: f64 = 5_000.0;

/// Rows that a trial chooses its rows from.
const TRIAL_ROWS: f64 = 10_000.0;

/// Widest range whose upper end is looked up in an index, row by row. For wider ranges, the rows are sorted once: thousands of
/// look-ups of thousands of rows are seconds of a processor.
const MAX_INDEX_STEPS: u64 = 200;

/// Sampled rows between the ends of a range, so that chance decides little, and the fewest rows that are sampled for a range.
const ROWS_IN_RANGE: f64 = 20.0;
const MIN_RANGE_SAMPLE: f64 = 1000.0;

/// Most rows around a bound that are drawn: of the relation, and of a sample of it.
const MAX_ROWS_AT_BOUND: u64 = 100;
const MAX_SAMPLED_ROWS_AT_BOUND: u64 = 10;

/// Rows at a bound that are drawn are at most this part of the rows beyond it.
const ROWS_AT_BOUND_DIVISOR: u64 = 5;

/// Distinct values are looked for among this multiple of their rows.
const DISTINCT_FACTOR: f64 = 10.0;

/// Returns whether a trial looks for a bound with this many rows beyond it in a sample of the relation's rows.
pub fn is_sampled(relation_rows: f64, rows_beyond: u64) -> bool {
    relation_rows > 2.0 * TRIAL_ROWS && rows_beyond as f64 > 2.0 * relation_rows / TRIAL_ROWS
}

/// Returns the query of an occurrence's feeder; `None` where no parameter meets the occurrence.
pub fn feeder_query(
    plan: &ReplayPlan,
    occurrence: usize,
    shape: &FeederShape,
) -> Result<Option<String>, UserError> {
    let mut parts = Vec::with_capacity(shape.strategies.len());
    for (share, strategy) in &shape.strategies {
        let Some(drawing) = Drawing::new(plan, occurrence, strategy, shape, None)? else { return Ok(None) };
        parts.push((*share, drawing));
    }
    if let [(_, only)] = &parts[..] {
        return Ok(Some(only.values_query("")));
    }
    // Each part has its share, however many rows it has.
    let weighted = |(share, drawing): &(f64, Drawing)| {
        let weight = format!(", {share}::pg_catalog.float8 / pg_catalog.count(*) OVER () AS weight");
        format!("({} LIMIT {MAX_ROWS})", drawing.values_query(&weight))
    };
    Ok(Some(parts.iter().map(weighted).collect::<Vec<_>>().join(" UNION ALL ")))
}

/// Returns a query for random rows' values; each row has two arrays of texts: the values, and those before their wrapping.
pub fn trial_query(
    plan: &ReplayPlan,
    occurrence: usize,
    strategy: &SamplingStrategy,
    shape: &FeederShape,
    limit: usize,
) -> Result<Option<String>, UserError> {
    Ok(Drawing::new(plan, occurrence, strategy, shape, Some(limit))?
        .map(|drawing| drawing.texts_query(limit)))
}

/// The parts of a query that draws values.
struct Drawing<'a> {
    plan: &'a ReplayPlan<'a>,
    shape: &'a FeederShape,
    /// The parameters, with SQL over the drawn rows `s` for their values before wrapping.
    columns: Vec<(usize, String)>,
    window: &'static str,
    /// The query that draws rows.
    rows: String,
}

impl<'a> Drawing<'a> {
    /// Returns SQL for a parameter's value, from SQL for it before wrapping.
    fn wrapped_value(&self, index: usize, raw: &str) -> String {
        let meeting = self.plan.analysed.parameters[index].meeting.as_ref();
        match meeting.and_then(|meeting| meeting.wrap.as_ref()) {
            Some(wrap) => self.plan.wrap_value(wrap, raw, self.shape),
            None => raw.to_owned(),
        }
    }

    fn values_query(&self, weight_column: &str) -> String {
        let list: Vec<String> = self
            .columns
            .iter()
            .map(|(index, raw)| format!("{} AS {}", self.wrapped_value(*index, raw), column_name(*index)))
            .collect();
        format!("SELECT {}{weight_column} FROM ({}) s{}", list.join(", "), self.rows, self.window)
    }

    fn texts_query(&self, limit: usize) -> String {
        let array = |texts: Vec<String>| format!("ARRAY[{}]::pg_catalog.text[]", texts.join(", "));
        let text = |sql: String| format!("({sql})::pg_catalog.text");
        let name = |index: usize| format!("q.{}", column_name(index));
        let wrapped = |(index, _): &(usize, String)| text(self.wrapped_value(*index, &name(*index)));
        let values = array(self.columns.iter().map(wrapped).collect());
        let raw_values = array(self.columns.iter().map(|(index, _)| text(name(*index))).collect());
        let list: Vec<String> =
            self.columns.iter().map(|(index, raw)| format!("{raw} AS {}", column_name(*index))).collect();
        // OFFSET keeps the planner from evaluating random values once for each of the arrays.
        format!(
            "SELECT {values}, {raw_values} FROM (SELECT {} FROM ({}) s{} OFFSET 0 LIMIT {limit}) q",
            list.join(", "),
            self.rows,
            self.window
        )
    }

    /// Returns `None` where no parameter meets the occurrence. With `limit`, only as many rows are drawn, for a trial.
    fn new(
        plan: &'a ReplayPlan<'a>,
        occurrence: usize,
        strategy: &SamplingStrategy,
        shape: &'a FeederShape,
        limit: Option<usize>,
    ) -> Result<Option<Self>, UserError> {
        let met: Vec<(usize, &Meeting)> = plan
            .parameters(occurrence)
            .into_iter()
            .filter_map(|index| {
                plan.analysed.parameters[index].meeting.as_ref().map(|meeting| (index, meeting))
            })
            .collect();
        if met.is_empty() {
            return Ok(None);
        }
        let relation = &plan.relations[occurrence];
        let rows = DrawnRows::new(relation, &met, strategy, limit)?;
        let columns = met
            .iter()
            .map(|&(index, meeting)| {
                let raw = rows.value(index, meeting, plan)?;
                let is_name = names_relations(&plan.analysed.parameters[index].sql_type);
                Ok((index, if is_name { format!("({raw})::pg_catalog.oid") } else { raw }))
            })
            .collect::<Result<_, UserError>>()?;
        let uses_other_rows = rows.uses_other_rows || strategy.drawn == SampledValues::Independent;
        let window = if uses_other_rows { " WINDOW w AS (ORDER BY pg_catalog.random())" } else { "" };
        Ok(Some(Self { plan, shape, columns, window, rows: rows.sql }))
    }
}

/// A query that draws rows of a relation.
struct DrawnRows<'a> {
    sql: String,
    relation: &'a SampledRelation,
    strategy: &'a SamplingStrategy,
    /// The distinct expressions that meet parameters, as columns `e1`, `e2`, ….
    expressions: Vec<&'a str>,
    /// The parameters for the lower and the upper end of a range.
    range: Option<(usize, usize)>,
    /// Whether the upper end of a range is looked up in an index.
    is_indexed: bool,
    /// Whether a value may come from another row than the drawn one.
    uses_other_rows: bool,
}

impl<'a> DrawnRows<'a> {
    fn new(
        relation: &'a SampledRelation,
        met: &[(usize, &'a Meeting)],
        strategy: &'a SamplingStrategy,
        limit: Option<usize>,
    ) -> Result<Self, UserError> {
        let mut expressions: Vec<&str> = met.iter().map(|(_, meeting)| meeting.expression.as_str()).collect();
        expressions.sort_unstable();
        expressions.dedup();
        let range = range(met);
        let upper = range.and_then(|(_, high)| met.iter().find(|(index, _)| *index == high));
        let is_indexed = match upper {
            Some((_, meeting)) if strategy.width <= MAX_INDEX_STEPS => {
                is_indexed(relation, &meeting.expression)?
            }
            _ => false,
        };
        let uses_other_rows =
            met.iter().any(|(_, m)| m.row > 0 || matches!(m.how, How::Array | How::Unequal));
        let mut rows =
            Self { sql: String::new(), relation, strategy, expressions, range, is_indexed, uses_other_rows };
        // Values of INSERT and SET may be NULL.
        let conditions: Vec<&Meeting> = met
            .iter()
            .map(|(_, meeting)| *meeting)
            .filter(|m| !matches!(m.how, How::Insert | How::Set))
            .collect();
        let sorted_by = upper.filter(|_| !is_indexed).map(|(_, meeting)| *meeting);
        let bound = met.iter().find(|(_, m)| matches!(m.how, How::Above | How::Below)).map(|(_, m)| *m);
        rows.sql = rows.query(&conditions, bound, sorted_by, limit);
        Ok(rows)
    }

    /// Returns the column of the drawn rows for an expression.
    fn expression_column(&self, expression: &str) -> String {
        let place = self.expressions.iter().position(|&other| other == expression).unwrap_or_default();
        format!("e{}", place + 1)
    }

    /// Returns the query. None of the `conditions` is NULL in its rows; `sorted_by` is the upper end of a range that is looked
    /// for among the sorted rows, in the column `upper`.
    fn query(
        &self,
        conditions: &[&Meeting],
        bound: Option<&Meeting>,
        sorted_by: Option<&Meeting>,
        limit: Option<usize>,
    ) -> String {
        let (relation, strategy) = (self.relation, self.strategy);
        let is_distinct = strategy.drawn == SampledValues::Distinct;
        let list: Vec<String> = self
            .expressions
            .iter()
            .map(|expression| format!("{expression} AS {}", self.expression_column(expression)))
            .collect();
        let list = list.join(", ");
        // NULLs of columns are filtered first: other expressions may be expensive.
        let columns = conditions.iter().filter(|meeting| meeting.column.is_some());
        let early = where_not_null(columns.map(|meeting| meeting.expression.clone()));
        let late =
            where_not_null(conditions.iter().map(|meeting| self.expression_column(&meeting.expression)));
        let wanted_rows = match (limit, self.uses_other_rows || self.is_indexed) {
            (Some(_), _) => TRIAL_ROWS,
            (None, true) => MAX_LOOKUP_ROWS,
            (None, false) => MAX_ROWS,
        };
        let name = &relation.name;
        let source = self.source(bound, sorted_by.is_some(), &early, wanted_rows, limit);
        let distinct = if is_distinct { "DISTINCT " } else { "" };
        let mut sql = format!("SELECT * FROM (SELECT {distinct}{list} FROM {source}) AS x{late}");
        if let Some(meeting) = sorted_by {
            let column = self.expression_column(&meeting.expression);
            let sampled_rows = self.sampled_rows(wanted_rows, limit);
            // The part of the rows that TABLESAMPLE returns.
            let part = match relation.is_table && relation.rows > 2.0 * sampled_rows {
                true => sampled_rows * 2.0 / relation.rows,
                false => 1.0,
            };
            let distance =
                ((strategy.width.saturating_sub(1) as f64 * part).round() as u64).max(u64::from(part < 1.0));
            sql = format!(
                "SELECT x.*, coalesce(pg_catalog.lead({column}, {distance}) OVER (ORDER BY {column}), \
                     (SELECT pg_catalog.max({}) FROM {name} AS r)) AS upper FROM ({sql}) AS x",
                meeting.expression
            );
        }
        match limit {
            Some(limit) => format!("SELECT * FROM ({sql}) AS x{}", random(limit)),
            None if is_distinct => format!("{sql} LIMIT {MAX_ROWS}"),
            None if self.uses_other_rows || self.is_indexed => format!("{sql} LIMIT {wanted_rows}"),
            None => sql,
        }
    }

    /// Returns the item of FROM: the relation, or some of its rows, as `r`.
    fn source(
        &self,
        bound: Option<&Meeting>,
        is_sorted: bool,
        early: &str,
        wanted_rows: f64,
        limit: Option<usize>,
    ) -> String {
        let (relation, strategy, name) = (self.relation, self.strategy, &self.relation.name);
        match (bound, strategy.rows_beyond) {
            // Rows around the one with this many rows beyond it.
            (Some(meeting), Some(beyond)) => {
                let direction = if meeting.how == How::Above { " DESC" } else { "" };
                let order = format!("ORDER BY {}{direction}", meeting.expression);
                let is_sampled = limit.is_some() && relation.is_table && is_sampled(relation.rows, beyond);
                let (sample, part) = match is_sampled {
                    true => {
                        let part = TRIAL_ROWS / relation.rows;
                        (format!(" TABLESAMPLE BERNOULLI ({:.6})", 100.0 * part), part)
                    }
                    false => (String::new(), 1.0),
                };
                let most = if is_sampled { MAX_SAMPLED_ROWS_AT_BOUND } else { MAX_ROWS_AT_BOUND };
                let count = (beyond / ROWS_AT_BOUND_DIVISOR).clamp(1, most);
                let first = ((beyond as f64 * part) as u64).saturating_sub(count / 2);
                format!(
                    "(SELECT * FROM {name} AS r{sample}{early} {order} OFFSET {first} LIMIT {count}) AS r"
                )
            }
            _ if strategy.drawn == SampledValues::Distinct => {
                format!("{name} AS r{}{early}", sample(relation, DISTINCT_FACTOR * wanted_rows))
            }
            _ => {
                let rows = if is_sorted { self.sampled_rows(wanted_rows, limit) } else { wanted_rows };
                let sample = sample(relation, rows);
                match limit {
                    Some(limit) if !is_sorted => {
                        format!("(SELECT * FROM {name} AS r{sample}{early}{}) AS r", random(2 * limit))
                    }
                    _ => format!("{name} AS r{sample}{early}"),
                }
            }
        }
    }

    /// Returns how many rows to sample for a range, so that there are some between its ends.
    fn sampled_rows(&self, wanted_rows: f64, limit: Option<usize>) -> f64 {
        let highest = if limit.is_some() { 2.0 * TRIAL_ROWS } else { MAX_ROWS };
        let rows = ROWS_IN_RANGE * self.relation.rows / self.strategy.width.max(1) as f64;
        rows.clamp(wanted_rows.min(MIN_RANGE_SAMPLE), highest)
    }

    /// Returns SQL over the drawn rows for a parameter's value before wrapping.
    fn value(&self, index: usize, meeting: &Meeting, plan: &ReplayPlan) -> Result<String, UserError> {
        let column = &self.expression_column(&meeting.expression);
        let next = |row: usize| format!("pg_catalog.lead({column}, {row}, {column}) OVER w");
        let strategy = self.strategy;
        Ok(match meeting.how {
            How::Array if strategy.array_length == 0 => {
                format!("'{{}}'::{}", plan.analysed.parameters[index].sql_type)
            }
            How::Array => format!(
                "pg_catalog.array_agg({column}) OVER (w ROWS BETWEEN CURRENT ROW AND {} FOLLOWING)",
                strategy.array_length - 1
            ),
            How::Unequal => next(meeting.row + 1),
            How::Like => pattern(column, strategy),
            How::Words => format!(
                "(SELECT pg_catalog.string_agg(u.lexeme, ' & ') FROM (SELECT v.lexeme FROM pg_catalog.unnest(s.{column}) AS v \
                  WHERE v.lexeme ~ E'^\\\\w+$' ORDER BY pg_catalog.random() LIMIT {}) AS u)",
                strategy.words
            ),
            How::Below if self.range.is_some_and(|(_, high)| high == index) => {
                if !self.is_indexed {
                    return Ok("s.upper".to_owned());
                }
                let (expression, name) = (&meeting.expression, &self.relation.name);
                format!(
                    "coalesce((SELECT {expression} FROM {name} AS r WHERE {expression} >= s.{column} ORDER BY {expression} \
                         OFFSET {} LIMIT 1), (SELECT pg_catalog.max({expression}) FROM {name} AS r))",
                    strategy.width.max(1) - 1
                )
            }
            How::Equal if strategy.drawn == SampledValues::Missing => {
                missing(column, &plan.analysed.parameters[index].sql_type)
            }
            _ if meeting.row > 0 => next(meeting.row),
            // Both ends of a range come from one row.
            _ if strategy.drawn == SampledValues::Independent
                && self.range.is_none_or(|(low, _)| low != index) =>
            {
                match self.expressions.iter().position(|&other| other == meeting.expression) {
                    Some(place) if place > 0 => next(place),
                    _ => column.clone(),
                }
            }
            _ => column.clone(),
        })
    }
}

/// Returns a WHERE clause that excludes NULLs of these expressions.
fn where_not_null(expressions: impl Iterator<Item = String>) -> String {
    let mut conditions: Vec<String> =
        expressions.map(|expression| format!("{expression} IS NOT NULL")).collect();
    conditions.sort_unstable();
    conditions.dedup();
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

/// Returns the clauses that choose random rows.
fn random(limit: usize) -> String {
    format!(" ORDER BY pg_catalog.random() LIMIT {limit}")
}

/// Returns a TABLESAMPLE clause for about twice these rows, if there are more: SYSTEM samples whole blocks, and may find fewer.
fn sample(relation: &SampledRelation, rows: f64) -> String {
    if !relation.is_table || relation.rows <= 2.0 * rows {
        return String::new();
    }
    format!(" TABLESAMPLE SYSTEM ({:.4})", (200.0 * rows / relation.rows).clamp(0.0001, 100.0))
}

/// Finds the parameters of a range over one expression: of its lower and of its upper end.
fn range(met: &[(usize, &Meeting)]) -> Option<(usize, usize)> {
    met.iter().find_map(|(low, lower)| {
        let is_upper =
            |(_, upper): &&(usize, &Meeting)| upper.how == How::Below && upper.expression == lower.expression;
        let high = met.iter().find(is_upper)?.0;
        (lower.how == How::Above).then_some((*low, high))
    })
}

/// Returns SQL for a LIKE pattern with the first characters of a value, or those after its first one.
fn pattern(column: &str, strategy: &SamplingStrategy) -> String {
    let length = strategy.pattern_length;
    let part = match strategy.is_infix {
        false => format!("pg_catalog.\"left\"({column}::pg_catalog.text, {length})"),
        true => format!("pg_catalog.substr({column}::pg_catalog.text, 2, {length})"),
    };
    let first = if strategy.is_infix { "'%' ||" } else { "" };
    format!("{first} pg_catalog.regexp_replace({part}, E'([\\\\\\\\%_])', E'\\\\\\\\\\\\1', 'g') || '%'")
}

/// Returns SQL for a value that hardly any row has, made from a row's; NULL for types without such values.
fn missing(column: &str, sql_type: &str) -> String {
    match sql_type {
        "smallint" | "integer" | "bigint" | "numeric" | "real" | "double precision" => {
            format!("(-1 - pg_catalog.abs({column}))::{sql_type}")
        }
        "text" | "character varying" | "character" => format!("({column} || '~')::{sql_type}"),
        "uuid" => format!("pg_catalog.md5({column}::pg_catalog.text)::pg_catalog.uuid"),
        "date" | "timestamp without time zone" | "timestamp with time zone" => {
            format!("'-infinity'::{sql_type}")
        }
        _ => format!("NULL::{sql_type}"),
    }
}

/// Returns SQL for a new value of a column that INSERT must not find there already; `None` where an existing value will do.
///
/// Numbers come from the column's sequence, or at random from above the usual keys; texts are random UUIDs.
pub fn inserted_value(
    relation: pg_sys::Oid,
    column: i16,
    sql_type: &str,
) -> Result<Option<String>, UserError> {
    let inserted = read_inserted_column(relation, column)?;
    if let Some(default) = &inserted.default
        && (default == "DEFAULT" || default.starts_with("nextval("))
    {
        // The key word DEFAULT is allowed only in VALUES.
        return Ok(Some(if default == "DEFAULT" {
            next_identity(relation, column)?
        } else {
            default.clone()
        }));
    }
    let is_integer = matches!(sql_type, "smallint" | "integer" | "bigint");
    if !(inserted.is_unique || inserted.ends_key && is_integer) {
        return Ok(None);
    }
    Ok(match sql_type {
        "bigint" | "numeric" => Some("(1000000000 + pg_catalog.random() * 8e18)::pg_catalog.int8".to_owned()),
        "integer" => Some("(1000000000 + pg_catalog.random() * 1147483647)::pg_catalog.int4".to_owned()),
        "smallint" => Some("(10000 + pg_catalog.random() * 22767)::pg_catalog.int2".to_owned()),
        "uuid" => Some("pg_catalog.gen_random_uuid()".to_owned()),
        "text" | "character varying" => Some("pg_catalog.gen_random_uuid()::pg_catalog.text".to_owned()),
        _ => None,
    })
}

/// Returns SQL for the next value of an identity column's sequence.
fn next_identity(relation: pg_sys::Oid, column: i16) -> Result<String, UserError> {
    let sql = "SELECT format('pg_catalog.nextval(%L::pg_catalog.regclass)', \
                   d.objid::regclass::text) \
               FROM pg_depend d \
               WHERE d.classid = 'pg_class'::regclass \
                 AND d.refclassid = 'pg_class'::regclass \
                 AND d.refobjid = $1 AND d.refobjsubid = $2 \
                 AND d.deptype = 'i'::\"char\"";
    let next_value = fetch::<String>(sql, &[relation.into(), i32::from(column).into()])?;
    Ok(next_value.unwrap_or_else(|| "DEFAULT".to_owned()))
}

/// Returns a value for an argument that takes only certain words; as a field of a time, one with about `rows` distinct values.
pub fn argument(function: &str, place: usize, rows: f64) -> Option<&'static str> {
    match (function, place) {
        ("date_trunc", 0) => Some("day"),
        ("date_part" | "extract", 0) => Some(match rows.round() as i64 {
            7 => "dow",
            8..=12 => "month",
            25..=31 => "day",
            _ => "hour",
        }),
        ("timezone", 0) => Some("UTC"),
        // The words come from a tsvector, and are not stemmed again.
        ("to_tsquery" | "plainto_tsquery" | "phraseto_tsquery" | "websearch_to_tsquery", 0) => {
            Some("pg_catalog.simple")
        }
        ("to_char", 1) => Some("YYYY-MM-DD"),
        _ => None,
    }
}

/// Returns whether a type is numeric.
pub fn is_number(type_oid: u32) -> bool {
    let types = [
        pg_sys::INT2OID,
        pg_sys::INT4OID,
        pg_sys::INT8OID,
        pg_sys::FLOAT4OID,
        pg_sys::FLOAT8OID,
        pg_sys::NUMERICOID,
    ];
    types.contains(&pg_sys::Oid::from(type_oid))
}

/// Returns a plain value of a type, for a parameter that meets no column: an enum's first label, a value of a domain's base
/// type, an empty array or range.
pub fn plain_value(type_oid: u32) -> Result<Option<String>, UserError> {
    let base = match shape_of(type_oid.into()) {
        TypeShape::Array => return Ok(Some("{}".to_owned())),
        TypeShape::Range => return Ok(Some("empty".to_owned())),
        TypeShape::Multirange => return Ok(Some("{}".to_owned())),
        TypeShape::Other(base) => base,
    };
    if let Some(text) = plain_base_value(base) {
        return Ok(Some(text.to_owned()));
    }
    let sql = "SELECT e.enumlabel::text FROM pg_enum e \
               WHERE e.enumtypid = $1 ORDER BY e.enumsortorder LIMIT 1";
    fetch::<String>(sql, &[base.into()])
}

fn plain_base_value(type_oid: pg_sys::Oid) -> Option<&'static str> {
    match type_oid {
        pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID => Some("1"),
        pg_sys::FLOAT4OID | pg_sys::FLOAT8OID | pg_sys::NUMERICOID => Some("1"),
        pg_sys::BOOLOID => Some("true"),
        pg_sys::INTERVALOID => Some("1 day"),
        pg_sys::DATEOID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => Some("now"),
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID => Some("a"),
        pg_sys::JSONOID | pg_sys::JSONBOID => Some("{}"),
        pg_sys::REGCONFIGOID => Some("pg_catalog.english"),
        pg_sys::TIMEOID | pg_sys::TIMETZOID => Some("12:00"),
        pg_sys::MONEYOID => Some("1"),
        pg_sys::UUIDOID => Some("00000000-0000-0000-0000-000000000000"),
        pg_sys::INETOID | pg_sys::CIDROID => Some("127.0.0.1"),
        pg_sys::MACADDROID => Some("00:00:00:00:00:00"),
        pg_sys::BYTEAOID => Some("a"),
        pg_sys::NAMEOID => Some("a"),
        pg_sys::BITOID | pg_sys::VARBITOID => Some("1"),
        pg_sys::OIDOID | pg_sys::XIDOID | pg_sys::XID8OID | pg_sys::CIDOID => Some("1"),
        pg_sys::TIDOID => Some("(0,1)"),
        pg_sys::TSQUERYOID | pg_sys::TSVECTOROID => Some("a"),
        pg_sys::JSONPATHOID => Some("$"),
        pg_sys::PG_LSNOID => Some("0/1"),
        pg_sys::MACADDR8OID => Some("00:00:00:00:00:00:00:00"),
        pg_sys::XMLOID => Some("<a/>"),
        pg_sys::POINTOID => Some("(0,0)"),
        pg_sys::LINEOID => Some("{1,0,0}"),
        pg_sys::LSEGOID | pg_sys::BOXOID | pg_sys::PATHOID | pg_sys::POLYGONOID => Some("((0,0),(1,1))"),
        pg_sys::CIRCLEOID => Some("<(0,0),1>"),
        pg_sys::REGCLASSOID => Some("pg_catalog.pg_class"),
        pg_sys::REGTYPEOID => Some("pg_catalog.int4"),
        pg_sys::CHAROID => Some("a"),
        _ => None,
    }
}
