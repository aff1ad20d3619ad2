//! Relations whose rows give parameters their values.

use bench_base::error::UserError;
use pgrx::pg_sys;

use crate::server::spi::{fetch_all, in_session, quote_identifier};

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
