//! The sources of parameter values, the relations that they are sampled from, and the strategies of sampling.

use bench_base::error::UserError;
use bench_capture::fidelity::Call;
use bench_capture::statements::with_values;
use pgrx::pg_sys;

use crate::driver::parameters::{Analysed, How, Wrap};
use crate::server::spi::{fetch_all, in_session, quote_identifier};

/// A value for each parameter of the statement, as text.
pub type ParameterValues = Vec<Option<String>>;

/// What stands for a parameter in the script.
#[derive(Clone, Debug)]
pub enum ParameterSource {
    /// A column of a feeder.
    Feeder,
    Sql(String),
    /// [`FeederShape::limit`].
    Limit,
    /// [`FeederShape::inner_limit`].
    InnerLimit,
    /// A column of a feeder if the shape [is paged](FeederShape::is_paged), else 0.
    Offset,
    /// [`FeederShape::compared_number`] as this type.
    Compared(String),
}

/// A statement with the sources of its parameters' values.
pub struct ReplayPlan<'a> {
    pub text: &'a str,
    pub analysed: &'a Analysed,
    /// One per occurrence of a relation in the statement.
    pub relations: Vec<SampledRelation>,
    /// One per parameter.
    pub values: Vec<ParameterSource>,
}

/// Returns the name of the feeder's column for a parameter, from 0.
pub fn column_name(index: usize) -> String {
    bench_capture::statements::variable(index as u32 + 1)
}

impl ReplayPlan<'_> {
    /// Returns SQL for a parameter's value, from SQL for the value of a relation's row. Other parameters in the wrap become
    /// constants.
    pub fn wrap_value(&self, wrap: &Wrap, value: &str, shape: &FeederShape) -> String {
        with_values(&wrap.around(value), |number| parameter_sql(self, shape, number, |_| "NULL".to_owned()))
    }

    /// Returns the parameters, from 0, that take their values from an occurrence's rows.
    pub fn parameters(&self, occurrence: usize) -> Vec<usize> {
        (0..self.values.len())
            .filter(|&index| {
                let meeting = self.analysed.parameters[index].meeting.as_ref();
                matches!(self.values[index], ParameterSource::Feeder)
                    && meeting.is_some_and(|m| m.occurrence == occurrence)
            })
            .collect()
    }

    /// Returns names and types of the columns of an occurrence's feeder.
    pub fn columns(&self, occurrence: usize) -> Vec<(String, String)> {
        let column = |index: usize| (column_name(index), self.analysed.parameters[index].sql_type.clone());
        self.parameters(occurrence).into_iter().map(column).collect()
    }

    /// Returns whether a parameter meets a relation in this way.
    pub fn has_parameter(&self, how: How) -> bool {
        self.analysed.parameters.iter().filter_map(|p| p.meeting.as_ref()).any(|meeting| meeting.how == how)
    }

    /// Returns the rows of the largest relation.
    pub fn largest_relation_rows(&self) -> f64 {
        self.relations.iter().map(|relation| relation.rows).fold(0.0, f64::max)
    }
}

/// Returns SQL for parameter `$number`; `fed` returns that for one with a feeder's value, by its index.
pub fn parameter_sql(
    plan: &ReplayPlan,
    shape: &FeederShape,
    number: u32,
    fed: impl FnOnce(usize) -> String,
) -> String {
    let index = number as usize - 1;
    match plan.values.get(index) {
        Some(ParameterSource::Limit) => shape.limit.to_string(),
        Some(ParameterSource::InnerLimit) => shape.inner_limit.to_string(),
        Some(ParameterSource::Compared(sql_type)) => format!("'{}'::{sql_type}", shape.compared_number),
        Some(ParameterSource::Offset) if !shape.is_paged => "0".to_owned(),
        Some(ParameterSource::Sql(sql)) => sql.clone(),
        _ => fed(index),
    }
}

/// A relation whose rows are sampled.
#[derive(Clone, Debug)]
pub struct SampledRelation {
    pub oid: pg_sys::Oid,
    /// Qualified, and quoted where it has to be.
    pub name: String,
    /// Whether TABLESAMPLE can be used.
    pub is_table: bool,
    pub is_temporary: bool,
    /// The planner's estimate, with those of partitions; at least 0.
    pub rows: f64,
}

/// Reads a relation from the catalogs; `None` where it has been dropped.
pub fn read_relation(oid: pg_sys::Oid) -> Result<Option<SampledRelation>, UserError> {
    let sql = "SELECT format('%I.%I', n.nspname, c.relname), c.relkind = ANY ('{r,m,p}'::\"char\"[]), \
                   c.relpersistence = 't'::\"char\", \
                   (SELECT sum(greatest(p.reltuples, 0))::float8 FROM pg_class p \
                    WHERE p.oid = c.oid OR p.oid IN (SELECT t.relid FROM pg_partition_tree(c.oid) t WHERE t.isleaf)) \
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.oid = $1";
    let relations = fetch_all(sql, &[oid.into()], |row| {
        Ok(SampledRelation {
            oid,
            name: row.get::<String>(1)?.unwrap_or_default(),
            is_table: row.get::<bool>(2)?.unwrap_or_default(),
            is_temporary: row.get::<bool>(3)?.unwrap_or_default(),
            rows: row.get::<f64>(4)?.unwrap_or_default(),
        })
    })?;
    Ok(relations.into_iter().next())
}

/// The default and uniqueness of a column that is inserted into.
#[derive(Clone, Debug, Default)]
pub struct InsertedColumn {
    /// The expression of its default, or `DEFAULT` for an identity column.
    pub default: Option<String>,
    /// Whether it is a unique key by itself.
    pub is_unique: bool,
    /// Whether it is the last column of a unique key, and not part of a foreign key.
    pub ends_key: bool,
}

/// Reads a column that is inserted into from the catalogs.
pub fn read_inserted_column(relation: pg_sys::Oid, column: i16) -> Result<InsertedColumn, UserError> {
    let sql = "SELECT a.attidentity <> '', a.atthasdef, \
                   EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique \
                       AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum), \
                   EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique \
                       AND i.indnkeyatts > 1 AND a.attnum = i.indkey[i.indnkeyatts - 1]) \
                   AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid \
                       AND k.contype = 'f'::\"char\" AND a.attnum = ANY (k.conkey)) \
               FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum = $2";
    let columns = fetch_all(sql, &[relation.into(), column.into()], |row| {
        let flag = |place| row.get::<bool>(place).map(Option::unwrap_or_default);
        let column = InsertedColumn { default: None, is_unique: flag(3)?, ends_key: flag(4)? };
        Ok((flag(1)?, flag(2)?, column))
    })?;
    let Some((is_identity, has_default, inserted)) = columns.into_iter().next() else {
        return Ok(InsertedColumn::default());
    };
    let default = match (is_identity, has_default) {
        (true, _) => Some("DEFAULT".to_owned()),
        (false, true) => read_default(relation, column)?,
        (false, false) => None,
    };
    Ok(InsertedColumn { default, ..inserted })
}

/// Reads the expression of a column's default, with names as the session's search_path resolves them: so do feeders' queries.
fn read_default(relation: pg_sys::Oid, column: i16) -> Result<Option<String>, UserError> {
    let sql = "SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d \
               WHERE d.adrelid OPERATOR(pg_catalog.=) $1 AND d.adnum OPERATOR(pg_catalog.=) $2";
    in_session::fetch(sql, &[relation.into(), column.into()])
}

/// Reads a column's values and their weights from pg_stats, as far as this role may: the most common values, and the
/// histogram's bounds, which share the rest equally.
pub fn read_statistics(relation: pg_sys::Oid, column: i16) -> Result<Vec<(f64, String)>, UserError> {
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

/// Returns whether an expression over a relation's columns is the first column of an index.
pub fn is_indexed(relation: &SampledRelation, expression: &str) -> Result<bool, UserError> {
    let sql = "SELECT pg_catalog.pg_get_indexdef(i.indexrelid, 1, true) FROM pg_catalog.pg_index i \
               WHERE i.indrelid OPERATOR(pg_catalog.=) $1 AND i.indisvalid AND i.indpred IS NULL";
    let first_columns = in_session::fetch_all(sql, &[relation.oid.into()], |row| row.get::<String>(1))?;
    let is_first = |first: String| first == expression || first == quote_identifier(expression);
    Ok(first_columns.into_iter().flatten().any(is_first))
}

/// The rows whose values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SampledValues {
    /// Random rows: values that many rows have come often.
    #[default]
    Rows,
    /// Each distinct value as often as another.
    Distinct,
    /// Random rows, another one for each expression.
    Independent,
    /// Values that hardly any row has.
    Missing,
}

/// A way to draw values.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingStrategy {
    pub drawn: SampledValues,
    /// Rows between the two ends of a range.
    pub width: u64,
    /// Rows that satisfy a bound on one side: values near that position are drawn.
    pub rows_beyond: Option<u64>,
    /// Characters of a pattern.
    pub pattern_length: u32,
    /// Whether a pattern also begins with %.
    pub is_infix: bool,
    /// Elements of an array.
    pub array_length: u32,
    /// Words of a full text search.
    pub words: u32,
    /// Pages that OFFSET skips.
    pub page: u64,
}

impl Default for SamplingStrategy {
    fn default() -> Self {
        Self {
            drawn: SampledValues::Rows,
            width: 10,
            rows_beyond: None,
            pattern_length: 3,
            is_infix: false,
            array_length: 5,
            words: 1,
            page: 0,
        }
    }
}

/// The strategies of a statement's feeders, and the constants of its script, that decide on the rows and blocks of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct FeederShape {
    /// LIMIT of the whole statement.
    pub limit: u64,
    /// LIMIT of a part of the statement.
    pub inner_limit: u64,
    /// The number that is compared with an expression that is not a column's, such as an aggregate.
    pub compared_number: u64,
    /// Whether OFFSET is a parameter; otherwise it is 0.
    pub is_paged: bool,
    /// Each with its share of the calls.
    pub strategies: Vec<(f64, SamplingStrategy)>,
}

impl Default for FeederShape {
    fn default() -> Self {
        Self {
            limit: 10,
            inner_limit: 10,
            compared_number: 1,
            is_paged: false,
            strategies: vec![(1.0, SamplingStrategy::default())],
        }
    }
}

/// Multiplies the sizes of a strategy's ranges and arrays, as far as the statement has such parameters.
pub fn scale_sizes(strategy: &SamplingStrategy, plan: &ReplayPlan, factor: f64) -> SamplingStrategy {
    let scale = |size: u64| ((size as f64 * factor).round() as u64).max(1);
    let mut scaled = strategy.clone();
    if plan.has_parameter(How::Above) && plan.has_parameter(How::Below) {
        scaled.width = scale(strategy.width);
    }
    scaled.rows_beyond = strategy.rows_beyond.map(scale);
    if plan.has_parameter(How::Array) {
        scaled.array_length = scale(strategy.array_length.into()) as u32;
    }
    scaled
}

/// Returns LIMITs under which a call may return the captured rows: if that is a whole number, only this; otherwise usual sizes
/// of pages, which not all calls fill, then the captured rows rounded up.
pub fn candidate_limits(captured: &Call) -> Vec<u64> {
    const PAGES: [u64; 10] = [5, 10, 20, 25, 30, 50, 100, 200, 1000, 10_000];
    const MAX_PAGES: usize = 3;
    /// Largest difference to a whole number that is still a whole number.
    const WHOLE: f64 = 0.005;
    let exact = (captured.rows.ceil() as u64).max(1);
    if (captured.rows - captured.rows.round()).abs() < WHOLE && captured.rows > 0.5 {
        return vec![exact];
    }
    let pages = PAGES.into_iter().filter(|&page| page >= exact).take(MAX_PAGES);
    pages.chain([exact]).collect()
}

/// Values of [`FeederShape::inner_limit`] that are worth a trial.
pub const INNER_LIMITS: [u64; 8] = [10, 1, 3, 5, 20, 50, 100, 1000];

/// Values of [`FeederShape::compared_number`] that are worth a trial.
pub const COMPARED_NUMBERS: [u64; 8] = [1, 0, 2, 3, 5, 10, 100, 1000];

/// Sizes that are worth a trial beside that of the captured rows. Sizes in between follow where these come near.
const RANGE_ROWS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];
const ARRAY_LENGTHS: [u32; 9] = [0, 1, 2, 3, 8, 10, 20, 50, 100];
const MAX_ARRAY_LENGTH: u64 = 100;
const PREFIX_LENGTHS: [u32; 15] = [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 100];
const INFIX_LENGTHS: [u32; 5] = [2, 3, 4, 6, 10];
const WORDS: [u32; 2] = [2, 3];
const SKIPPED_PAGES: [u64; 7] = [1, 2, 3, 4, 6, 10, 20];

/// Returns strategies that are worth a trial, each once; the default comes first.
pub fn candidate_strategies(plan: &ReplayPlan, captured: &Call) -> Vec<SamplingStrategy> {
    let first = SamplingStrategy::default();
    let mut all = vec![first.clone()];
    let rows = plan.largest_relation_rows() as u64;
    let captured_rows = (captured.rows.round() as u64).max(1);
    let sizes = || std::iter::once(captured_rows).chain(RANGE_ROWS).filter(move |&size| size <= rows.max(2));
    let (above, below) = (plan.has_parameter(How::Above), plan.has_parameter(How::Below));
    if above && below {
        all.extend(sizes().map(|width| SamplingStrategy { width, ..first.clone() }));
    }
    if above || below {
        all.extend(sizes().map(|size| SamplingStrategy { rows_beyond: Some(size), ..first.clone() }));
    }
    if plan.has_parameter(How::Array) {
        let lengths = std::iter::once(captured_rows.min(MAX_ARRAY_LENGTH) as u32).chain(ARRAY_LENGTHS);
        all.extend(lengths.map(|array_length| SamplingStrategy { array_length, ..first.clone() }));
    }
    if plan.has_parameter(How::Like) {
        let pattern =
            |pattern_length, is_infix| SamplingStrategy { pattern_length, is_infix, ..first.clone() };
        all.extend(PREFIX_LENGTHS.into_iter().map(|length| pattern(length, false)));
        all.extend(INFIX_LENGTHS.into_iter().map(|length| pattern(length, true)));
    }
    if plan.has_parameter(How::Words) {
        all.extend(WORDS.into_iter().map(|words| SamplingStrategy { words, ..first.clone() }));
    }
    if plan.values.iter().any(|value| matches!(value, ParameterSource::Offset)) {
        all.extend(SKIPPED_PAGES.into_iter().map(|page| SamplingStrategy { page, ..first.clone() }));
    }
    let mut drawn = Vec::new();
    if !plan.analysed.occurrences.is_empty() {
        drawn.push(SampledValues::Distinct);
    }
    if has_several_expressions(plan) {
        drawn.push(SampledValues::Independent);
    }
    if plan.has_parameter(How::Equal) {
        drawn.push(SampledValues::Missing);
    }
    all.extend(drawn.into_iter().map(|drawn| SamplingStrategy { drawn, ..first.clone() }));
    let mut distinct: Vec<SamplingStrategy> = Vec::with_capacity(all.len());
    for strategy in all {
        if !distinct.contains(&strategy) {
            distinct.push(strategy);
        }
    }
    distinct
}

/// Returns whether several expressions over one relation meet parameters.
fn has_several_expressions(plan: &ReplayPlan) -> bool {
    (0..plan.analysed.occurrences.len()).any(|occurrence| {
        let parameters = plan.parameters(occurrence);
        let meeting = |&index: &usize| plan.analysed.parameters[index].meeting.as_ref();
        let mut expressions = parameters.iter().filter_map(meeting).map(|meeting| &meeting.expression);
        expressions.next().is_some_and(|first| expressions.any(|other| other != first))
    })
}
