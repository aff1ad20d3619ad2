//! The queries of feeders: rows of a relation as values of the parameters that meet it.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::replay_plan::{
    FeederShape, ReplayPlan, SampledRelation, SampledValues, SamplingStrategy, column, is_indexed, target,
};
use crate::driver::parameters::{How, Meeting, TypeShape, shape_of};
use crate::server::spi::fetch;
use crate::store::names_relations;

/// Rows that are drawn from a relation at most, before a feeder keeps a choice of them.
const ENOUGH: f64 = 200_000.0;

/// Rows that are drawn where each one takes a look at others.
const FEW: f64 = 5_000.0;

/// Rows of which a trial draws some.
const TRIED: f64 = 10_000.0;

/// Rows of an index that are walked for each value to the upper end of its range. Of wider ranges, the rows are put in order
/// once: thousands of values times thousands of rows are seconds of a processor.
const WALKED: u64 = 200;

/// Whether a trial looks in a sample for the value with so many of a number of rows beyond it.
pub fn is_sampled(rows: f64, beyond: u64) -> bool {
    rows > 2.0 * TRIED && beyond as f64 > 2.0 * rows / TRIED
}

/// The query of an occurrence's feeder; `None` where nothing meets it.
pub fn query_of(
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
        return Ok(Some(only.values("")));
    }
    // Each part has its share, however many rows it has.
    let weighted = |(share, drawing): &(f64, Drawing)| {
        let weight = format!(", {share}::pg_catalog.float8 / pg_catalog.count(*) OVER () AS weight");
        format!("({} LIMIT {ENOUGH})", drawing.values(&weight))
    };
    Ok(Some(parts.iter().map(weighted).collect::<Vec<_>>().join(" UNION ALL ")))
}

/// A query for some rows' values, and for what they are made of: two arrays of texts in each row.
pub fn trial_query(
    plan: &ReplayPlan,
    occurrence: usize,
    strategy: &SamplingStrategy,
    shape: &FeederShape,
    most: usize,
) -> Result<Option<String>, UserError> {
    Ok(Drawing::new(plan, occurrence, strategy, shape, Some(most))?.map(|drawing| drawing.texts(most)))
}

/// What a query is put together of.
struct Drawing<'a> {
    plan: &'a ReplayPlan<'a>,
    shape: &'a FeederShape,
    /// The parameters, and what their values are made of, over the drawn rows `s`.
    columns: Vec<(usize, String)>,
    window: &'static str,
    /// The query that draws rows.
    rows: String,
}

impl<'a> Drawing<'a> {
    /// A parameter's value, of what it is made of.
    fn value(&self, index: usize, raw: &str) -> String {
        let meeting = self.plan.analysed.parameters[index].meeting.as_ref();
        match meeting.and_then(|meeting| meeting.wrap.as_ref()) {
            Some(wrap) => self.plan.wrapped(wrap, raw, self.shape),
            None => raw.to_owned(),
        }
    }

    fn values(&self, more: &str) -> String {
        let list: Vec<String> = self
            .columns
            .iter()
            .map(|(index, raw)| format!("{} AS {}", self.value(*index, raw), column(*index)))
            .collect();
        format!("SELECT {}{more} FROM ({}) s{}", list.join(", "), self.rows, self.window)
    }

    fn texts(&self, most: usize) -> String {
        let array = |texts: Vec<String>| format!("ARRAY[{}]::pg_catalog.text[]", texts.join(", "));
        let text = |sql: String| format!("({sql})::pg_catalog.text");
        let name = |index: usize| format!("q.{}", column(index));
        let values =
            array(self.columns.iter().map(|(index, _)| text(self.value(*index, &name(*index)))).collect());
        let made_of = array(self.columns.iter().map(|(index, _)| text(name(*index))).collect());
        let list: Vec<String> =
            self.columns.iter().map(|(index, raw)| format!("{raw} AS {}", column(*index))).collect();
        // What is drawn at random is drawn once: OFFSET keeps the planner from moving it.
        format!(
            "SELECT {values}, {made_of} FROM (SELECT {} FROM ({}) s{} OFFSET 0 LIMIT {most}) q",
            list.join(", "),
            self.rows,
            self.window
        )
    }

    /// `None` where nothing meets the occurrence; `most` where only so many rows are drawn.
    fn new(
        plan: &'a ReplayPlan<'a>,
        occurrence: usize,
        strategy: &SamplingStrategy,
        shape: &'a FeederShape,
        most: Option<usize>,
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
        let rows = DrawnRows::new(relation, &met, strategy, most)?;
        let columns = met
            .iter()
            .map(|&(index, meeting)| {
                let raw = rows.value(index, meeting, plan)?;
                let is_name = names_relations(&plan.analysed.parameters[index].sql_type);
                Ok((index, if is_name { format!("({raw})::pg_catalog.oid") } else { raw }))
            })
            .collect::<Result<_, UserError>>()?;
        let is_looking = rows.is_looking || strategy.drawn == SampledValues::Apart;
        let window = if is_looking { " WINDOW w AS (ORDER BY pg_catalog.random())" } else { "" };
        Ok(Some(Self { plan, shape, columns, window, rows: rows.sql }))
    }
}

/// Rows of a relation.
struct DrawnRows<'a> {
    sql: String,
    relation: &'a SampledRelation,
    strategy: &'a SamplingStrategy,
    /// What parameters meet: the columns `e1`, `e2`, …
    expressions: Vec<&'a str>,
    /// The parameters below and above a range.
    range: Option<(usize, usize)>,
    /// Whether the upper end of a range is looked for in an index.
    is_indexed: bool,
    /// Whether values of other rows are taken.
    is_looking: bool,
}

impl<'a> DrawnRows<'a> {
    fn new(
        relation: &'a SampledRelation,
        met: &[(usize, &'a Meeting)],
        strategy: &'a SamplingStrategy,
        most: Option<usize>,
    ) -> Result<Self, UserError> {
        let mut expressions: Vec<&str> = met.iter().map(|(_, meeting)| meeting.expression.as_str()).collect();
        expressions.sort_unstable();
        expressions.dedup();
        let range = range(met);
        let upper = range.and_then(|(_, high)| met.iter().find(|(index, _)| *index == high));
        let is_indexed = match upper {
            Some((_, meeting)) if strategy.width <= WALKED => is_indexed(relation, &meeting.expression)?,
            _ => false,
        };
        let is_looking = met.iter().any(|(_, m)| m.row > 0 || matches!(m.how, How::Array | How::Unequal));
        let mut rows =
            Self { sql: String::new(), relation, strategy, expressions, range, is_indexed, is_looking };
        // A column may be left out of what is inserted.
        let conditions: Vec<&Meeting> = met
            .iter()
            .map(|(_, meeting)| *meeting)
            .filter(|m| !matches!(m.how, How::Insert | How::Set))
            .collect();
        let neighbours = upper.filter(|_| !is_indexed).map(|(_, meeting)| *meeting);
        let bound = met.iter().find(|(_, m)| matches!(m.how, How::Above | How::Below)).map(|(_, m)| *m);
        rows.sql = rows.query(&conditions, bound, neighbours, most);
        Ok(rows)
    }

    fn inner(&self, expression: &str) -> String {
        let place = self.expressions.iter().position(|&other| other == expression).unwrap_or_default();
        format!("e{}", place + 1)
    }

    fn query(
        &self,
        conditions: &[&Meeting],
        bound: Option<&Meeting>,
        neighbours: Option<&Meeting>,
        most: Option<usize>,
    ) -> String {
        let (relation, strategy) = (self.relation, self.strategy);
        let is_distinct = strategy.drawn == SampledValues::Distinct;
        let list: Vec<String> = self
            .expressions
            .iter()
            .map(|expression| format!("{expression} AS {}", self.inner(expression)))
            .collect();
        let list = list.join(", ");
        // What is a column is left out early, for other expressions may cost more.
        let filter = |of: &dyn Fn(&Meeting) -> Option<String>| {
            let mut all: Vec<String> = conditions.iter().filter_map(|meeting| of(meeting)).collect();
            all.sort_unstable();
            all.dedup();
            if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
        };
        let early = filter(&|m| m.column.map(|_| format!("{} IS NOT NULL", m.expression)));
        let late = filter(&|m| Some(format!("{} IS NOT NULL", self.inner(&m.expression))));
        let enough = match (most, self.is_looking || self.is_indexed) {
            (Some(_), _) => TRIED,
            (None, true) => FEW,
            (None, false) => ENOUGH,
        };
        let name = &relation.name;
        let source = self.source(bound, neighbours.is_some(), &early, enough, most);
        let distinct = if is_distinct { "DISTINCT " } else { "" };
        let mut sql = format!("SELECT * FROM (SELECT {distinct}{list} FROM {source}) AS x{late}");
        if let Some(meeting) = neighbours {
            let inner = self.inner(&meeting.expression);
            let part = match relation.is_table && relation.rows > 2.0 * self.sampled(enough, most) {
                true => self.sampled(enough, most) * 2.0 / relation.rows,
                false => 1.0,
            };
            let further =
                ((strategy.width.saturating_sub(1) as f64 * part).round() as u64).max(u64::from(part < 1.0));
            sql = format!(
                "SELECT x.*, coalesce(pg_catalog.lead({inner}, {further}) OVER (ORDER BY {inner}), \
                     (SELECT pg_catalog.max({}) FROM {name} AS r)) AS upper FROM ({sql}) AS x",
                meeting.expression
            );
        }
        match most {
            Some(most) => format!("SELECT * FROM ({sql}) AS x{}", random(most)),
            None if is_distinct => format!("{sql} LIMIT {ENOUGH}"),
            None if self.is_looking || self.is_indexed => format!("{sql} LIMIT {enough}"),
            None => sql,
        }
    }

    /// The relation, or some of its rows, behind FROM.
    fn source(
        &self,
        bound: Option<&Meeting>,
        has_neighbours: bool,
        early: &str,
        enough: f64,
        most: Option<usize>,
    ) -> String {
        let (relation, strategy, name) = (self.relation, self.strategy, &self.relation.name);
        match (bound, strategy.beyond) {
            // Rows around the one with so many beyond it.
            (Some(meeting), Some(beyond)) => {
                let direction = if meeting.how == How::Above { " DESC" } else { "" };
                let order = format!("ORDER BY {}{direction}", meeting.expression);
                let is_sampled = most.is_some() && relation.is_table && is_sampled(relation.rows, beyond);
                let (sample, part) = match is_sampled {
                    true => {
                        let part = TRIED / relation.rows;
                        (format!(" TABLESAMPLE BERNOULLI ({:.6})", 100.0 * part), part)
                    }
                    false => (String::new(), 1.0),
                };
                let around = (beyond / 5).clamp(1, if is_sampled { 10 } else { 100 });
                let first = ((beyond as f64 * part) as u64).saturating_sub(around / 2);
                format!(
                    "(SELECT * FROM {name} AS r{sample}{early} {order} OFFSET {first} LIMIT {around}) AS r"
                )
            }
            _ if strategy.drawn == SampledValues::Distinct => {
                format!("{name} AS r{}{early}", sample(relation, 10.0 * enough))
            }
            _ => {
                let rows = if has_neighbours { self.sampled(enough, most) } else { enough };
                let sample = sample(relation, rows);
                match most {
                    Some(most) if !has_neighbours => {
                        format!("(SELECT * FROM {name} AS r{sample}{early}{}) AS r", random(2 * most))
                    }
                    _ => format!("{name} AS r{sample}{early}"),
                }
            }
        }
    }

    /// How many rows serve to find one that is `width` rows further up: so many that there are some in between.
    fn sampled(&self, enough: f64, most: Option<usize>) -> f64 {
        let highest = if most.is_some() { 2.0 * TRIED } else { ENOUGH };
        (20.0 * self.relation.rows / self.strategy.width.max(1) as f64).clamp(enough.min(1000.0), highest)
    }

    /// A parameter's value, before what is wrapped around it, over the columns of the drawn rows.
    fn value(&self, index: usize, meeting: &Meeting, plan: &ReplayPlan) -> Result<String, UserError> {
        let inner = &self.inner(&meeting.expression);
        let next = |row: usize| format!("pg_catalog.lead({inner}, {row}, {inner}) OVER w");
        let strategy = self.strategy;
        Ok(match meeting.how {
            How::Array if strategy.array == 0 => {
                format!("'{{}}'::{}", plan.analysed.parameters[index].sql_type)
            }
            How::Array => format!(
                "pg_catalog.array_agg({inner}) OVER (w ROWS BETWEEN CURRENT ROW AND {} FOLLOWING)",
                strategy.array - 1
            ),
            How::Unequal => next(meeting.row + 1),
            How::Like => pattern(inner, strategy),
            How::Words => format!(
                "(SELECT pg_catalog.string_agg(u.lexeme, ' & ') FROM (SELECT v.lexeme FROM pg_catalog.unnest(s.{inner}) AS v \
                  WHERE v.lexeme ~ E'^\\\\w+$' ORDER BY pg_catalog.random() LIMIT {}) AS u)",
                strategy.words
            ),
            How::Below if self.range.is_some_and(|(_, high)| high == index) => {
                if !self.is_indexed {
                    return Ok("s.upper".to_owned());
                }
                let (expression, name) = (&meeting.expression, &self.relation.name);
                format!(
                    "coalesce((SELECT {expression} FROM {name} AS r WHERE {expression} >= s.{inner} ORDER BY {expression} \
                         OFFSET {} LIMIT 1), (SELECT pg_catalog.max({expression}) FROM {name} AS r))",
                    strategy.width.max(1) - 1
                )
            }
            How::Equal if strategy.drawn == SampledValues::Missing => {
                missing(inner, &plan.analysed.parameters[index].sql_type)
            }
            _ if meeting.row > 0 => next(meeting.row),
            _ if strategy.drawn == SampledValues::Apart && self.range.is_none_or(|(low, _)| low != index) => {
                // Each expression of another row.
                match self.expressions.iter().position(|&other| other == meeting.expression) {
                    Some(place) if place > 0 => next(place),
                    _ => inner.clone(),
                }
            }
            _ => inner.clone(),
        })
    }
}

/// So many of the rows, each as likely as another.
fn random(most: usize) -> String {
    format!(" ORDER BY pg_catalog.random() LIMIT {most}")
}

fn sample(relation: &SampledRelation, rows: f64) -> String {
    // Blocks are sampled, and those at random: twice as many, so that there are enough.
    if !relation.is_table || relation.rows <= 2.0 * rows {
        return String::new();
    }
    format!(" TABLESAMPLE SYSTEM ({:.4})", (200.0 * rows / relation.rows).clamp(0.0001, 100.0))
}

/// The two ends of a range over one expression: the parameters below and above.
fn range(met: &[(usize, &Meeting)]) -> Option<(usize, usize)> {
    met.iter().find_map(|(low, one)| {
        let other = |how: How, (_, m): &&(usize, &Meeting)| m.how == how && m.expression == one.expression;
        let high = met.iter().find(|pair| other(How::Below, pair))?.0;
        (one.how == How::Above).then_some((*low, high))
    })
}

/// Characters of a value as a pattern.
fn pattern(inner: &str, strategy: &SamplingStrategy) -> String {
    let part = match strategy.infix {
        false => format!("pg_catalog.\"left\"({inner}::pg_catalog.text, {})", strategy.pattern),
        true => format!("pg_catalog.substr({inner}::pg_catalog.text, 2, {})", strategy.pattern),
    };
    let first = if strategy.infix { "'%' ||" } else { "" };
    format!("{first} pg_catalog.regexp_replace({part}, E'([\\\\\\\\%_])', E'\\\\\\\\\\\\1', 'g') || '%'")
}

/// A value that is hardly any row's; NULL for types without such.
fn missing(inner: &str, sql_type: &str) -> String {
    match sql_type {
        "smallint" | "integer" | "bigint" | "numeric" | "real" | "double precision" => {
            format!("(-1 - pg_catalog.abs({inner}))::{sql_type}")
        }
        "text" | "character varying" | "character" => format!("({inner} || '~')::{sql_type}"),
        "uuid" => format!("pg_catalog.md5({inner}::pg_catalog.text)::pg_catalog.uuid"),
        "date" | "timestamp without time zone" | "timestamp with time zone" => {
            format!("'-infinity'::{sql_type}")
        }
        _ => format!("NULL::{sql_type}"),
    }
}

// Values that no row gives: of unique columns that are inserted into, and of parameters that meet no column.

/// SQL for the value of a column that INSERT must not find there already; `None` where an existing row's serves.
///
/// Whole numbers come from the column's sequence, or at random from above those that are there; texts and bytes end in a
/// random UUID's digits, as far as the type lets them.
pub fn value(relation: pg_sys::Oid, column: i16, sql_type: &str) -> Result<Option<String>, UserError> {
    let target = target(relation, column)?;
    if let Some(default) = &target.default
        && (default == "DEFAULT" || default.starts_with("nextval("))
    {
        // As an expression: DEFAULT stands in no other place than VALUES.
        return Ok(Some(if default == "DEFAULT" { identity(relation, column)? } else { default.clone() }));
    }
    if !(target.is_unique || target.ends_key && matches!(sql_type, "smallint" | "integer" | "bigint")) {
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

/// The next value of an identity column's sequence.
fn identity(relation: pg_sys::Oid, column: i16) -> Result<String, UserError> {
    let sql = "SELECT format('pg_catalog.nextval(%L::pg_catalog.regclass)', \
                   d.objid::regclass::text) \
               FROM pg_depend d \
               WHERE d.classid = 'pg_class'::regclass \
                 AND d.refclassid = 'pg_class'::regclass \
                 AND d.refobjid = $1 AND d.refobjsubid = $2 \
                 AND d.deptype = 'i'::\"char\"";
    let found = fetch::<String>(sql, &[relation.into(), i32::from(column).into()])?;
    Ok(found.unwrap_or_else(|| "DEFAULT".to_owned()))
}

/// An argument that only some words serve for; of fields of a time, one with so many values as rows came back, if there is one.
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
        // Words of a tsvector are looked for as they are.
        ("to_tsquery" | "plainto_tsquery" | "phraseto_tsquery" | "websearch_to_tsquery", 0) => {
            Some("pg_catalog.simple")
        }
        ("to_char", 1) => Some("YYYY-MM-DD"),
        _ => None,
    }
}

/// Whether a type is one of numbers.
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

/// A value of a type that meets no column: one whose size matters little. Of an enum the first, of a domain one of its base
/// type, of arrays and ranges the empty one.
pub fn of_type(type_oid: u32) -> Result<Option<String>, UserError> {
    let base = match shape_of(type_oid.into()) {
        TypeShape::Array => return Ok(Some("{}".to_owned())),
        TypeShape::Range => return Ok(Some("empty".to_owned())),
        TypeShape::Multirange => return Ok(Some("{}".to_owned())),
        TypeShape::Other(base) => base,
    };
    if let Some(text) = of_base_type(base) {
        return Ok(Some(text.to_owned()));
    }
    let sql = "SELECT e.enumlabel::text FROM pg_enum e \
               WHERE e.enumtypid = $1 ORDER BY e.enumsortorder LIMIT 1";
    fetch::<String>(sql, &[base.into()])
}

fn of_base_type(type_oid: pg_sys::Oid) -> Option<&'static str> {
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
