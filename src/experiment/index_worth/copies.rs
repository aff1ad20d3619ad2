//! Copies of a table for duels about its indexes: rows, constraints and defaults, with all indexes but one.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::guc::SAFE_PATH;
use crate::server::spi::{fetch_all, quote_literal};

/// The statements that make a copy, in their order. Indexes keep their names; unique ones come without their constraints.
/// Access method, storage parameters and tablespaces are the table's: HOT updates and waits depend on them.
const STATEMENTS: &str = "\
    SELECT ARRAY[ \
        pg_catalog.format('SELECT pg_catalog.set_config(''default_tablespace'', %L, true)', COALESCE(s.spcname, '')), \
        pg_catalog.format('CREATE %sTABLE %I.%I (LIKE %I.%I INCLUDING ALL EXCLUDING INDEXES)%s%s', \
            CASE WHEN c.relpersistence OPERATOR(pg_catalog.=) 'u'::pg_catalog.\"char\" THEN 'UNLOGGED ' END, $2, c.relname, n.nspname, c.relname, \
            (SELECT pg_catalog.format(' USING %I', m.amname) FROM pg_catalog.pg_am m WHERE m.oid OPERATOR(pg_catalog.=) c.relam), \
            ' WITH (' OPERATOR(pg_catalog.||) o.options OPERATOR(pg_catalog.||) ')'), \
        pg_catalog.format('INSERT INTO %I.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %I.%I', \
            $2, c.relname, a.names, a.names, n.nspname, c.relname) \
    ] OPERATOR(pg_catalog.||) ARRAY( \
        SELECT pg_catalog.format('SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence(%L, %L), pg_catalog.max(%I)) FROM %I.%I HAVING pg_catalog.max(%I) OPERATOR(pg_catalog.>) 0', \
            pg_catalog.format('%I.%I', $2, c.relname), i.attname, i.attname, $2, c.relname, i.attname) \
        FROM pg_catalog.pg_attribute i \
        WHERE i.attrelid OPERATOR(pg_catalog.=) c.oid AND NOT i.attisdropped AND i.attidentity OPERATOR(pg_catalog.<>) ''::pg_catalog.\"char\" \
    ) OPERATOR(pg_catalog.||) ARRAY( \
        SELECT l.statement \
        FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) x.indexrelid \
        LEFT JOIN pg_catalog.pg_tablespace t ON t.oid OPERATOR(pg_catalog.=) r.reltablespace \
        CROSS JOIN LATERAL (SELECT CASE WHEN x.indisunique THEN 'UNIQUE ' END AS is_unique) AS u \
        CROSS JOIN LATERAL pg_catalog.unnest(ARRAY[ \
            pg_catalog.format('SELECT pg_catalog.set_config(''default_tablespace'', %L, true)', COALESCE(t.spcname, '')), \
            pg_catalog.format('CREATE %sINDEX %I ON %I.%I ', u.is_unique, r.relname, $2, c.relname) OPERATOR(pg_catalog.||) \
                pg_catalog.substr(pg_catalog.pg_get_indexdef(x.indexrelid), 1 OPERATOR(pg_catalog.+) pg_catalog.length(pg_catalog.format( \
                    'CREATE %sINDEX %I ON %s%I.%I ', u.is_unique, r.relname, \
                    CASE WHEN r.relkind OPERATOR(pg_catalog.=) 'I'::pg_catalog.\"char\" THEN 'ONLY ' END, n.nspname, c.relname))) \
        ]) WITH ORDINALITY AS l(statement, place) \
        WHERE x.indrelid OPERATOR(pg_catalog.=) c.oid AND x.indexrelid IS DISTINCT FROM $3 AND x.indisvalid \
        ORDER BY x.indexrelid, l.place \
    ) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
    LEFT JOIN pg_catalog.pg_tablespace s ON s.oid OPERATOR(pg_catalog.=) c.reltablespace \
    CROSS JOIN LATERAL ( \
        SELECT pg_catalog.string_agg(pg_catalog.format('%s%I = %L', g.prefix, p.option_name, p.option_value), ', ') AS options \
        FROM (SELECT '' AS prefix, c.reloptions \
              UNION ALL SELECT 'toast.', k.reloptions FROM pg_catalog.pg_class k WHERE k.oid OPERATOR(pg_catalog.=) c.reltoastrelid) AS g \
        CROSS JOIN LATERAL pg_catalog.pg_options_to_table(g.reloptions) AS p \
    ) AS o \
    CROSS JOIN LATERAL ( \
        SELECT pg_catalog.string_agg(pg_catalog.quote_ident(t.attname), ', ' ORDER BY t.attnum) AS names FROM pg_catalog.pg_attribute t \
        WHERE t.attrelid OPERATOR(pg_catalog.=) c.oid AND t.attnum OPERATOR(pg_catalog.>) 0 AND NOT t.attisdropped \
          AND t.attgenerated OPERATOR(pg_catalog.=) ''::pg_catalog.\"char\" \
    ) AS a \
    WHERE c.oid OPERATOR(pg_catalog.=) $1 AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}') AND a.names IS NOT NULL";

/// A text that copies a table into a schema, with all of its indexes but this one (0: with all), as one transaction. Names in it are
/// looked up in pg_catalog alone, but for those with a schema.
///
/// # Errors
/// 42809 for what is no table.
pub(super) fn copy_text(table: pg_sys::Oid, schema: &str, without: pg_sys::Oid) -> Result<String, UserError> {
    let made = fetch_all(STATEMENTS, &[table.into(), schema.into(), without.into()], |row| {
        row.get::<Vec<String>>(1)
    })?;
    let Some(statements) = made.into_iter().flatten().next() else {
        let message = format!("relation with OID {} is not a table that can be copied", table.to_u32());
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    };
    let path = format!(
        "SELECT pg_catalog.set_config('search_path', {}, true)",
        quote_literal(&SAFE_PATH.to_string_lossy())
    );
    Ok([vec![path], statements].concat().join("; "))
}
