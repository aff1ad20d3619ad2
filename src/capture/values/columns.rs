//! Relations whose rows give parameters their values.

use bench_base::error::UserError;
use pgrx::pg_sys;

use crate::server::spi::in_session::fetch_all;
use crate::server::spi::quote_identifier;

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
    let sql = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.relkind OPERATOR(pg_catalog.=) ANY ('{r,m,p}'::pg_catalog.\"char\"[]), \
                   c.relpersistence OPERATOR(pg_catalog.=) 't'::pg_catalog.\"char\", \
                   (SELECT pg_catalog.sum(greatest(p.reltuples, 0))::pg_catalog.float8 FROM pg_catalog.pg_class p \
                    WHERE p.oid OPERATOR(pg_catalog.=) c.oid OR p.oid IN (SELECT t.relid FROM pg_catalog.pg_partition_tree(c.oid) t WHERE t.isleaf)) \
               FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
               WHERE c.oid OPERATOR(pg_catalog.=) $1";
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
    let sql = "SELECT CASE WHEN a.attidentity OPERATOR(pg_catalog.<>) ''::pg_catalog.\"char\" THEN 'DEFAULT' \
                   ELSE pg_catalog.pg_get_expr(d.adbin, d.adrelid) END, \
                   EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid OPERATOR(pg_catalog.=) a.attrelid AND i.indisunique \
                       AND i.indnkeyatts OPERATOR(pg_catalog.=) 1 AND i.indkey[0] OPERATOR(pg_catalog.=) a.attnum), \
                   EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid OPERATOR(pg_catalog.=) a.attrelid AND i.indisunique \
                       AND i.indnkeyatts OPERATOR(pg_catalog.>) 1 AND a.attnum OPERATOR(pg_catalog.=) i.indkey[i.indnkeyatts OPERATOR(pg_catalog.-) 1]) \
                   AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid OPERATOR(pg_catalog.=) a.attrelid \
                       AND k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog.\"char\" AND a.attnum OPERATOR(pg_catalog.=) ANY (k.conkey)) \
               FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d \
                   ON d.adrelid OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum \
               WHERE a.attrelid OPERATOR(pg_catalog.=) $1 AND a.attnum OPERATOR(pg_catalog.=) $2";
    let found = fetch_all(sql, &[relation.into(), column.into()], |row| {
        Ok(InsertedColumn {
            default: row.get(1)?,
            is_unique: row.get::<bool>(2)?.unwrap_or_default(),
            ends_key: row.get::<bool>(3)?.unwrap_or_default(),
        })
    })?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// Values of a column as pg_stats has them for this role, with their weights: the most common ones and the bounds of the
/// histogram, each of which stands for an equal share of the rest.
pub fn statistics(relation: pg_sys::Oid, column: i16) -> Result<Vec<(f64, String)>, UserError> {
    let sql = "WITH s AS ( \
                   SELECT s.most_common_vals::pg_catalog.text::pg_catalog.text[] AS common, s.most_common_freqs AS shares, \
                       s.histogram_bounds::pg_catalog.text::pg_catalog.text[] AS bounds, s.null_frac \
                   FROM pg_catalog.pg_stats s JOIN pg_catalog.pg_class c ON c.relname OPERATOR(pg_catalog.=) s.tablename \
                   JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace AND n.nspname OPERATOR(pg_catalog.=) s.schemaname \
                   JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attname OPERATOR(pg_catalog.=) s.attname \
                   WHERE c.oid OPERATOR(pg_catalog.=) $1 AND a.attnum OPERATOR(pg_catalog.=) $2 \
                   ORDER BY s.inherited DESC LIMIT 1) \
               SELECT v.share::pg_catalog.float8, v.value FROM s CROSS JOIN LATERAL \
                   ROWS FROM (pg_catalog.unnest(s.shares), pg_catalog.unnest(s.common)) AS v (share, value) \
               UNION ALL \
               SELECT greatest(1 OPERATOR(pg_catalog.-) s.null_frac OPERATOR(pg_catalog.-) coalesce((SELECT pg_catalog.sum(f) \
                          FROM pg_catalog.unnest(s.shares) f), 0), 0.001)::pg_catalog.float8 \
                      OPERATOR(pg_catalog./) pg_catalog.cardinality(s.bounds), b.value \
               FROM s CROSS JOIN LATERAL pg_catalog.unnest(s.bounds) AS b (value)";
    fetch_all(sql, &[relation.into(), column.into()], |row| {
        Ok((row.get::<f64>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default()))
    })
}

/// Whether an expression over a relation's columns is the first column of an index.
pub fn is_indexed(relation: &SampledRelation, expression: &str) -> Result<bool, UserError> {
    let sql = "SELECT pg_catalog.pg_get_indexdef(i.indexrelid, 1, true) FROM pg_catalog.pg_index i \
               WHERE i.indrelid OPERATOR(pg_catalog.=) $1 AND i.indisvalid AND i.indpred IS NULL";
    let all = fetch_all(sql, &[relation.oid.into()], |row| row.get::<String>(1))?;
    Ok(all.into_iter().flatten().any(|first| first == expression || first == quote_identifier(expression)))
}
