//! Copies of a table for duels about its indexes: rows, constraints and defaults, with all indexes but one.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::guc::SAFE_PATH;
use crate::server::spi::{fetch, quote_literal};

/// The statements that make a copy, in their order. Indexes keep their names; unique ones come without their constraints.
/// Access method, storage parameters and tablespaces are the table's: HOT updates and waits depend on them.
const STATEMENTS: &str = "\
    SELECT ARRAY[ \
        format('SELECT set_config(''default_tablespace'', %L, true)', COALESCE(s.spcname, '')), \
        format('CREATE %sTABLE %I.%I (LIKE %I.%I INCLUDING ALL EXCLUDING INDEXES)%s%s', \
            CASE WHEN c.relpersistence = 'u'::\"char\" THEN 'UNLOGGED ' END, $2, c.relname, n.nspname, c.relname, \
            (SELECT format(' USING %I', m.amname) FROM pg_am m WHERE m.oid = c.relam), \
            ' WITH (' || o.options || ')'), \
        format('INSERT INTO %I.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %I.%I', \
            $2, c.relname, a.names, a.names, n.nspname, c.relname) \
    ] || ARRAY( \
        SELECT format('SELECT setval(pg_get_serial_sequence(%L, %L), max(%I)) FROM %I.%I HAVING max(%I) > 0', \
            format('%I.%I', $2, c.relname), i.attname, i.attname, $2, c.relname, i.attname) \
        FROM pg_attribute i \
        WHERE i.attrelid = c.oid AND NOT i.attisdropped AND i.attidentity <> ''::\"char\" \
    ) || ARRAY( \
        SELECT l.statement \
        FROM pg_index x JOIN pg_class r ON r.oid = x.indexrelid \
        LEFT JOIN pg_tablespace t ON t.oid = r.reltablespace \
        CROSS JOIN LATERAL (SELECT CASE WHEN x.indisunique THEN 'UNIQUE ' END AS is_unique) AS u \
        CROSS JOIN LATERAL unnest(ARRAY[ \
            format('SELECT set_config(''default_tablespace'', %L, true)', COALESCE(t.spcname, '')), \
            format('CREATE %sINDEX %I ON %I.%I ', u.is_unique, r.relname, $2, c.relname) || \
                substr(pg_get_indexdef(x.indexrelid), 1 + length(format( \
                    'CREATE %sINDEX %I ON %s%I.%I ', u.is_unique, r.relname, \
                    CASE WHEN r.relkind = 'I'::\"char\" THEN 'ONLY ' END, n.nspname, c.relname))) \
        ]) WITH ORDINALITY AS l(statement, place) \
        WHERE x.indrelid = c.oid AND x.indexrelid IS DISTINCT FROM $3 AND x.indisvalid \
        ORDER BY x.indexrelid, l.place \
    ) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace \
    CROSS JOIN LATERAL ( \
        SELECT string_agg(format('%s%I = %L', g.prefix, p.option_name, p.option_value), ', ') AS options \
        FROM (SELECT '' AS prefix, c.reloptions \
              UNION ALL SELECT 'toast.', k.reloptions FROM pg_class k WHERE k.oid = c.reltoastrelid) AS g \
        CROSS JOIN LATERAL pg_options_to_table(g.reloptions) AS p \
    ) AS o \
    CROSS JOIN LATERAL ( \
        SELECT string_agg(quote_ident(t.attname), ', ' ORDER BY t.attnum) AS names FROM pg_attribute t \
        WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped \
          AND t.attgenerated = ''::\"char\" \
    ) AS a \
    WHERE c.oid = $1 AND c.relkind = ANY ('{r,p}') AND a.names IS NOT NULL";

/// A text that copies a table into a schema, with all of its indexes but this one (0: with all), as one transaction. Names in it are
/// looked up in pg_catalog alone, but for those with a schema.
///
/// # Errors
/// 42809 for what is no table.
pub(super) fn copy_text(table: pg_sys::Oid, schema: &str, without: pg_sys::Oid) -> Result<String, UserError> {
    let made = fetch::<Vec<String>>(STATEMENTS, &[table.into(), schema.into(), without.into()])?;
    let Some(statements) = made else {
        let message = format!("relation with OID {} is not a table that can be copied", table.to_u32());
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    };
    let path = format!(
        "SELECT pg_catalog.set_config('search_path', {}, true)",
        quote_literal(&SAFE_PATH.to_string_lossy())
    );
    Ok([vec![path], statements].concat().join("; "))
}
