//! Where the values of a statement's parameters come from, and what takes the parameters' places.

use bench_base::error::UserError;
use bench_capture::fidelity::Call;
use bench_capture::statements::with_values;
use pgrx::pg_sys;

use crate::driver::parameters::{Analysed, How, Wrap};
use crate::server::spi::{fetch_all, in_session, quote_identifier};

/// A value for each parameter of the statement, as text.
pub type ParameterValues = Vec<Option<String>>;

/// What takes a parameter's place in the script.
#[derive(Clone, Debug)]
pub enum ParameterSource {
    /// A column of a feeder.
    Feeder,
    /// SQL.
    Sql(String),
    /// As many as the feeders' shape says.
    Limit,
    /// As [`Self::Limit`], of a part of the statement.
    InnerLimit,
    /// 0, unless the feeders' shape has pages.
    Offset,
    /// A number that is compared with what is no column's: as the feeders' shape says, of this type.
    Compared(String),
}

/// Where a parameter's value comes from.
pub struct ReplayPlan<'a> {
    pub text: &'a str,
    pub analysed: &'a Analysed,
    pub relations: Vec<SampledRelation>,
    pub values: Vec<ParameterSource>,
}

/// The name of a column of a feeder.
pub fn column(index: usize) -> String {
    bench_capture::statements::variable(index as u32 + 1)
}

impl ReplayPlan<'_> {
    /// A parameter's value in SQL, made of a value of a relation's row. Other parameters in it are constants.
    pub fn wrapped(&self, wrap: &Wrap, value: &str, shape: &FeederShape) -> String {
        with_values(&wrap.around(value), |number| sql_of(self, shape, number, |_| "NULL".to_owned()))
    }

    /// The parameters, from 0, that an occurrence's rows give values to.
    pub fn parameters(&self, occurrence: usize) -> Vec<usize> {
        (0..self.values.len())
            .filter(|&index| {
                let meeting = self.analysed.parameters[index].meeting.as_ref();
                matches!(self.values[index], ParameterSource::Feeder)
                    && meeting.is_some_and(|m| m.occurrence == occurrence)
            })
            .collect()
    }

    /// Names and types of the columns of an occurrence's feeder.
    pub fn columns(&self, occurrence: usize) -> Vec<(String, String)> {
        let one = |index: usize| (column(index), self.analysed.parameters[index].sql_type.clone());
        self.parameters(occurrence).into_iter().map(one).collect()
    }
}

/// A parameter's place in SQL, by what is to stand there.
pub fn sql_of(
    plan: &ReplayPlan,
    shape: &FeederShape,
    number: u32,
    fed: impl FnOnce(usize) -> String,
) -> String {
    let index = number as usize - 1;
    match plan.values.get(index) {
        Some(ParameterSource::Limit) => shape.limit.to_string(),
        Some(ParameterSource::InnerLimit) => shape.inner_limit.to_string(),
        Some(ParameterSource::Compared(sql_type)) => format!("'{}'::{sql_type}", shape.compared),
        Some(ParameterSource::Offset) if !shape.is_paged => "0".to_owned(),
        Some(ParameterSource::Sql(sql)) => sql.clone(),
        _ => fed(index),
    }
}

/// Whether a parameter meets something so.
pub fn has(plan: &ReplayPlan, how: How) -> bool {
    plan.analysed.parameters.iter().any(|p| p.meeting.as_ref().is_some_and(|meeting| meeting.how == how))
}

/// A relation, as far as drawing its rows is concerned.
#[derive(Clone, Debug)]
pub struct SampledRelation {
    pub oid: pg_sys::Oid,
    /// Qualified, and quoted where it has to be.
    pub name: String,
    /// Whether TABLESAMPLE serves.
    pub is_table: bool,
    pub is_temporary: bool,
    /// As the planner estimates them, of partitions too; at least 0.
    pub rows: f64,
}

/// A relation by its OID; `None` where it has gone.
pub fn relation(oid: pg_sys::Oid) -> Result<Option<SampledRelation>, UserError> {
    let sql = "SELECT format('%I.%I', n.nspname, c.relname), c.relkind = ANY ('{r,m,p}'::\"char\"[]), \
                   c.relpersistence = 't'::\"char\", \
                   (SELECT sum(greatest(p.reltuples, 0))::float8 FROM pg_class p \
                    WHERE p.oid = c.oid OR p.oid IN (SELECT t.relid FROM pg_partition_tree(c.oid) t WHERE t.isleaf)) \
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.oid = $1";
    let found = fetch_all(sql, &[oid.into()], |row| {
        Ok(SampledRelation {
            oid,
            name: row.get::<String>(1)?.unwrap_or_default(),
            is_table: row.get::<bool>(2)?.unwrap_or_default(),
            is_temporary: row.get::<bool>(3)?.unwrap_or_default(),
            rows: row.get::<f64>(4)?.unwrap_or_default(),
        })
    })?;
    Ok(found.into_iter().next())
}

/// What a column takes that INSERT gives a value.
#[derive(Clone, Debug, Default)]
pub struct InsertedColumn {
    /// The expression of its default, or `DEFAULT` for an identity column.
    pub default: Option<String>,
    /// It alone is unique.
    pub is_unique: bool,
    /// The last of several that are unique together, and of no foreign key.
    pub ends_key: bool,
}

/// A column that is inserted into.
pub fn target(relation: pg_sys::Oid, column: i16) -> Result<InsertedColumn, UserError> {
    let sql = "SELECT a.attidentity <> '', a.atthasdef, \
                   EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique \
                       AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum), \
                   EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique \
                       AND i.indnkeyatts > 1 AND a.attnum = i.indkey[i.indnkeyatts - 1]) \
                   AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid \
                       AND k.contype = 'f'::\"char\" AND a.attnum = ANY (k.conkey)) \
               FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum = $2";
    let found = fetch_all(sql, &[relation.into(), column.into()], |row| {
        let is = |place| row.get::<bool>(place).map(Option::unwrap_or_default);
        let column = InsertedColumn { default: None, is_unique: is(3)?, ends_key: is(4)? };
        Ok((is(1)?, is(2)?, column))
    })?;
    let Some((is_identity, has_default, target)) = found.into_iter().next() else {
        return Ok(InsertedColumn::default());
    };
    let default = match (is_identity, has_default) {
        (true, _) => Some("DEFAULT".to_owned()),
        (false, true) => default_of(relation, column)?,
        (false, false) => None,
    };
    Ok(InsertedColumn { default, ..target })
}

/// The expression of a column's default, as it reads under the session's search_path, where the feeder's query has it.
fn default_of(relation: pg_sys::Oid, column: i16) -> Result<Option<String>, UserError> {
    let sql = "SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d \
               WHERE d.adrelid OPERATOR(pg_catalog.=) $1 AND d.adnum OPERATOR(pg_catalog.=) $2";
    in_session::fetch(sql, &[relation.into(), column.into()])
}

/// Values of a column as pg_stats has them for this role, with their weights: the most common ones and the bounds of the
/// histogram, each of which stands for an equal share of the rest.
pub fn statistics(relation: pg_sys::Oid, column: i16) -> Result<Vec<(f64, String)>, UserError> {
    let sql = "WITH s AS ( \
                   SELECT s.most_common_vals::text::text[] AS common, s.most_common_freqs AS shares, \
                       s.histogram_bounds::text::text[] AS bounds, s.null_frac \
                   FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename \
                   JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = s.schemaname \
                   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname \
                   WHERE c.oid = $1 AND a.attnum = $2 \
                   ORDER BY s.inherited DESC LIMIT 1) \
               SELECT v.share::float8, v.value FROM s CROSS JOIN LATERAL \
                   ROWS FROM (unnest(s.shares), unnest(s.common)) AS v (share, value) \
               UNION ALL \
               SELECT greatest(1 - s.null_frac - coalesce((SELECT sum(f) \
                          FROM unnest(s.shares) f), 0), 0.001)::float8 \
                      / cardinality(s.bounds), b.value \
               FROM s CROSS JOIN LATERAL unnest(s.bounds) AS b (value)";
    fetch_all(sql, &[relation.into(), column.into()], |row| {
        Ok((row.get::<f64>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default()))
    })
}

/// Whether an expression over a relation's columns is the first column of an index.
pub fn is_indexed(relation: &SampledRelation, expression: &str) -> Result<bool, UserError> {
    let sql = "SELECT pg_catalog.pg_get_indexdef(i.indexrelid, 1, true) FROM pg_catalog.pg_index i \
               WHERE i.indrelid OPERATOR(pg_catalog.=) $1 AND i.indisvalid AND i.indpred IS NULL";
    let all = in_session::fetch_all(sql, &[relation.oid.into()], |row| row.get::<String>(1))?;
    Ok(all.into_iter().flatten().any(|first| first == expression || first == quote_identifier(expression)))
}

/// Which values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SampledValues {
    /// Those of rows: values that many rows have come often.
    #[default]
    Rows,
    /// Each distinct one as often as another.
    Distinct,
    /// Each parameter's of another row.
    Apart,
    /// Such as no row has.
    Missing,
}

/// One way to draw values.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingStrategy {
    pub drawn: SampledValues,
    /// Rows between the two ends of a range.
    pub width: u64,
    /// Rows beyond a value that bounds a column to one side.
    pub beyond: Option<u64>,
    /// Characters of a pattern.
    pub pattern: u32,
    /// Whether a pattern has a % before its characters, too.
    pub infix: bool,
    /// Elements of an array.
    pub array: u32,
    /// Words of a full text search.
    pub words: u32,
    /// Pages that OFFSET leaves out.
    pub page: u64,
}

impl Default for SamplingStrategy {
    fn default() -> Self {
        Self {
            drawn: SampledValues::Rows,
            width: 10,
            beyond: None,
            pattern: 3,
            infix: false,
            array: 5,
            words: 1,
            page: 0,
        }
    }
}

/// What a statement's feeders can be made to do, so that its calls take as many rows and blocks as were captured.
#[derive(Clone, Debug, PartialEq)]
pub struct FeederShape {
    /// Rows that LIMIT lets through.
    pub limit: u64,
    /// Rows that LIMIT lets through in a part of the statement.
    pub inner_limit: u64,
    /// What numbers are that are compared with what is no column's, such as an aggregate.
    pub compared: u64,
    /// Whether OFFSET is a parameter; otherwise it is 0.
    pub is_paged: bool,
    /// How values are drawn, each with its share of the calls.
    pub strategies: Vec<(f64, SamplingStrategy)>,
}

impl Default for FeederShape {
    fn default() -> Self {
        Self {
            limit: 10,
            inner_limit: 10,
            compared: 1,
            is_paged: false,
            strategies: vec![(1.0, SamplingStrategy::default())],
        }
    }
}

/// The strategies beside one: with ranges and arrays of other sizes.
pub fn neighbours(strategy: &SamplingStrategy, plan: &ReplayPlan, factor: f64) -> Vec<SamplingStrategy> {
    let times = |size: u64| ((size as f64 * factor).round() as u64).max(1);
    let scaled = SamplingStrategy {
        width: if is_range(plan) { times(strategy.width) } else { strategy.width },
        beyond: strategy.beyond.map(times),
        array: if has(plan, How::Array) { times(strategy.array.into()) as u32 } else { strategy.array },
        ..strategy.clone()
    };
    if scaled == *strategy { Vec::new() } else { vec![scaled] }
}

fn is_range(plan: &ReplayPlan) -> bool {
    has(plan, How::Above) && has(plan, How::Below)
}

/// Limits that return so many rows per call: exactly so many, where it is a whole number; or sizes of pages that not all calls
/// fill.
pub fn limits(captured: &Call) -> Vec<u64> {
    const PAGES: [u64; 10] = [5, 10, 20, 25, 30, 50, 100, 200, 1000, 10_000];
    let exact = (captured.rows.ceil() as u64).max(1);
    if (captured.rows - captured.rows.round()).abs() < 0.005 && captured.rows > 0.5 {
        return vec![exact];
    }
    let pages = PAGES.into_iter().filter(|&page| page >= exact).take(3);
    pages.chain([exact]).collect()
}

/// Limits of a part of a statement that are worth a trial.
pub const INNER_LIMITS: [u64; 8] = [10, 1, 3, 5, 20, 50, 100, 1000];

/// Numbers to compare with what is no column's that are worth a trial.
pub const COMPARED: [u64; 8] = [1, 0, 2, 3, 5, 10, 100, 1000];

/// Ways that are worth a trial, the first one being that without a choice.
pub fn strategies(plan: &ReplayPlan, captured: &Call) -> Vec<SamplingStrategy> {
    let first = SamplingStrategy::default();
    let mut all = vec![first.clone()];
    let add = |all: &mut Vec<SamplingStrategy>, strategy: SamplingStrategy| {
        if !all.contains(&strategy) {
            all.push(strategy);
        }
    };
    let rows = plan.relations.iter().map(|relation| relation.rows).fold(0.0, f64::max) as u64;
    let near = (captured.rows.round() as u64).max(1);
    // Others are between those that come near.
    let sizes: Vec<u64> = [near, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
        .into_iter()
        .filter(|&size| size <= rows.max(2))
        .collect();
    let (above, below) = (has(plan, How::Above), has(plan, How::Below));
    if above && below {
        sizes.iter().for_each(|&width| add(&mut all, SamplingStrategy { width, ..first.clone() }));
    }
    if above || below {
        sizes
            .iter()
            .for_each(|&beyond| add(&mut all, SamplingStrategy { beyond: Some(beyond), ..first.clone() }));
    }
    if has(plan, How::Array) {
        for array in [near.min(100) as u32, 0, 1, 2, 3, 8, 10, 20, 50, 100] {
            add(&mut all, SamplingStrategy { array, ..first.clone() });
        }
    }
    if has(plan, How::Like) {
        for pattern in [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 100] {
            add(&mut all, SamplingStrategy { pattern, ..first.clone() });
        }
        for pattern in [2, 3, 4, 6, 10] {
            add(&mut all, SamplingStrategy { pattern, infix: true, ..first.clone() });
        }
    }
    if has(plan, How::Words) {
        [2, 3].into_iter().for_each(|words| add(&mut all, SamplingStrategy { words, ..first.clone() }));
    }
    if plan.values.iter().any(|value| matches!(value, ParameterSource::Offset)) {
        [1, 2, 3, 4, 6, 10, 20]
            .into_iter()
            .for_each(|page| add(&mut all, SamplingStrategy { page, ..first.clone() }));
    }
    let others = if plan.analysed.occurrences.is_empty() {
        &[][..]
    } else {
        &[SampledValues::Distinct, SampledValues::Apart, SampledValues::Missing]
    };
    for &drawn in others {
        let is_worth = match drawn {
            SampledValues::Apart => is_apart(plan),
            SampledValues::Missing => has(plan, How::Equal),
            _ => true,
        };
        if is_worth {
            add(&mut all, SamplingStrategy { drawn, ..first.clone() });
        }
    }
    all
}

/// Whether several expressions over one relation meet parameters.
fn is_apart(plan: &ReplayPlan) -> bool {
    (0..plan.analysed.occurrences.len()).any(|occurrence| {
        let indexes = plan.parameters(occurrence);
        let expression = |&index: &usize| {
            plan.analysed.parameters[index].meeting.as_ref().map(|meeting| &meeting.expression)
        };
        let mut all = indexes.iter().filter_map(expression);
        all.next().is_some_and(|first| all.any(|other| other != first))
    })
}
