//! The variants of a sweep that measures what indexes are worth, and the copies of tables that they run on.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Duel, FixtureSpec, Role, RunArguments, RunSpec};
use bench_questions::sweep::{Asked, Question, Variant};
use bench_results::experiment::{AppliedSql, AskedIndex, IndexWorth};
use pgrx::pg_sys;
use serde_json::{Map, Value, json};

use super::hand::{HandRole, owner_of_table, role_for};
use crate::error::notice;
use crate::guard::switch_role::as_session_of;
use crate::run::client::names;
use crate::run::feeders::RowLimit;
use crate::run::nodes::node_connectivity::NodePairs;
use crate::run::prepare::prepared::prepare;
use crate::server::guc::{self, SAFE_PATH, with_search_path};
use crate::server::process::random_seed;
use crate::server::query::{NamedIndex, named_index};
use crate::server::relations;
use crate::server::roles::superuser;
use crate::server::rows::{select, select_one};
use crate::server::spi::{fetch, fetch_all, quote_identifier, quote_literal};

/// More indexes than this are taken for a mistake.
const MOST_INDEXES: usize = 100;

/// The table of an examined index.
struct Table {
    oid: pg_sys::Oid,
    schema: String,
    name: String,
}

impl Table {
    fn qualified(&self) -> String {
        format!("{}.{}", quote_identifier(&self.schema), quote_identifier(&self.name))
    }
}

/// An existing index that is examined.
struct ExistingIndex {
    index: pg_sys::Oid,
    table: Table,
    schema: String,
    name: String,
    definition: String,
    bytes: Option<i64>,
}

impl ExistingIndex {
    fn qualified(&self) -> String {
        format!("{}.{}", quote_identifier(&self.schema), quote_identifier(&self.name))
    }
}

/// Returns the question about a workload's indexes, or about one: the name of an existing index, or a CREATE INDEX.
///
/// # Errors
/// Those of a run; 42704 for an index that does not exist, 22023 for another text than a CREATE INDEX with a name, 55000 for no
/// or too many indexes.
pub fn ask(index: Option<&str>, margin: f64, run: &RunArguments) -> Result<Asked, UserError> {
    let prepared = prepare(run.clone(), RowLimit::First, NodePairs::Try)?.spec;
    let clients = Role { name: prepared.role.clone(), oid: prepared.role_oid };
    let named = names_of_scripts(&prepared);
    // Names are looked up as by the clients.
    let (path, mut tables) = as_session_of(&clients, || {
        let path = client_path(&prepared.fixtures, run.settings.as_ref())?;
        let tables = with_search_path(&path, || tables_named(&named))?;
        Ok((path, tables))
    })?;
    tables.extend(prepared.tables().map(pg_sys::Oid::from));
    let copies = Copies {
        path: path.clone(),
        number: random_seed().cast_unsigned() as u32,
        run_as: run.run_as.clone(),
        clients,
        named,
        are_of_all: index.is_none(),
    };
    let is_text = index.is_some_and(|index| index.trim_start().to_ascii_lowercase().starts_with("create"));
    let (mut indexes, mut variants) = (Vec::new(), Vec::new());
    if let Some(text) = index.filter(|_| is_text) {
        let (asked, index_variants) = candidate(text, &path, &copies)?;
        indexes.push(asked);
        variants.extend(index_variants);
    } else {
        let existing_indexes = match index {
            Some(name) => as_session_of(&copies.clients, || with_search_path(&path, || index_named(name)))?,
            None => indexes_of(&tables)?,
        };
        for (place, index) in existing_indexes.iter().enumerate() {
            let (asked, index_variants) = existing(index, &copies, place)?;
            indexes.push(asked);
            variants.extend(index_variants);
        }
    }
    if indexes.is_empty() || indexes.len() > MOST_INDEXES {
        let message = format!("the tables of the workload have {} valid indexes", indexes.len());
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("Name one: index => 'schema.name', or index => 'CREATE INDEX name ON table (column)'."));
    }
    Ok(Asked { question: Question::IndexWorth(IndexWorth { indexes, margin }), variants })
}

/// Returns the names that the scripts could use for tables, each behind its schema or an empty text.
fn names_of_scripts(run: &RunSpec) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for script in &run.scripts {
        pgrx::check_for_interrupts!();
        all.append(&mut names(&script.source));
    }
    all
}

/// Looks up names under the current search_path, and returns the tables among them and those behind views. A column's name may
/// match an unrelated table, whose indexes then turn out to save nothing.
fn tables_named(names: &BTreeSet<(String, String)>) -> Result<Vec<pg_sys::Oid>, UserError> {
    let (bare, qualified): (Vec<_>, Vec<_>) =
        names.iter().cloned().partition(|(schema, _): &(String, String)| schema.is_empty());
    let mut visible = Vec::new();
    for (_, name) in bare {
        pgrx::check_for_interrupts!();
        visible.extend(relations::named(&quote_identifier(&name)));
    }
    let (schemas, names): (Vec<String>, Vec<String>) = qualified.into_iter().unzip();
    let sql = "WITH RECURSIVE used (oid) AS ( \
                   (SELECT unnest($1) \
                    UNION SELECT c.oid FROM ROWS FROM (unnest($2), unnest($3)) AS u (schema, name) \
                        JOIN pg_namespace n ON n.nspname = u.schema::name \
                        JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = u.name::name) \
                   UNION SELECT d.refobjid FROM used u JOIN pg_rewrite r ON r.ev_class = u.oid \
                       JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid \
                           AND d.refclassid = 'pg_class'::regclass) \
               SELECT c.oid FROM used JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.relkind = ANY ('{r,p}') AND c.relpersistence <> 't' AND c.oid >= '16384'::oid \
                 AND n.nspname <> ALL ('{bench,bench_internal}')";
    let tables = select::<(pg_sys::Oid,)>(sql, &[visible.into(), schemas.into(), names.into()])?;
    Ok(tables.into_iter().map(|(table,)| table).collect())
}

/// Returns the clients' search_path.
fn client_path(fixtures: &[FixtureSpec], settings: Option<&Value>) -> Result<String, UserError> {
    let given = settings.and_then(|settings| settings.get("search_path")).and_then(Value::as_str);
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let schemas: Vec<&str> = fixtures.iter().filter_map(|fixture| fixture.schema.as_deref()).collect();
    Ok(guc::search_path_with(&schemas, &guc::initial_search_path()?))
}

const INDEXES: &str = "\
    SELECT x.indexrelid, x.indrelid, n.nspname::text, r.relname::text, c.relname::text, m.nspname::text, \
        COALESCE((SELECT sum(pg_relation_size(t.relid))::int8 FROM pg_partition_tree(x.indexrelid) AS t), \
            pg_relation_size(x.indexrelid)) \
    FROM pg_index x \
    JOIN pg_class r ON r.oid = x.indexrelid \
    JOIN pg_namespace n ON n.oid = r.relnamespace \
    JOIN pg_class c ON c.oid = x.indrelid \
    JOIN pg_namespace m ON m.oid = c.relnamespace \
    WHERE x.indisvalid = $2 AND NOT r.relispartition AND ";

/// Reads the valid or invalid indexes whose `column` is one of `oids`.
fn read(column: &str, oids: &[pg_sys::Oid], is_valid: bool) -> Result<Vec<ExistingIndex>, UserError> {
    let arguments = [oids.to_vec().into(), is_valid.into()];
    let mut indexes = fetch_all(&format!("{INDEXES}{column} = ANY ($1) ORDER BY 4, 3"), &arguments, |row| {
        let text = |place| Ok::<_, pgrx::spi::Error>(row.get::<String>(place)?.unwrap_or_default());
        let oid =
            |place| Ok::<_, pgrx::spi::Error>(row.get::<pg_sys::Oid>(place)?.unwrap_or(pg_sys::InvalidOid));
        Ok(ExistingIndex {
            index: oid(1)?,
            table: Table { oid: oid(2)?, schema: text(6)?, name: text(5)? },
            schema: text(3)?,
            name: text(4)?,
            definition: String::new(),
            bytes: row.get::<i64>(7)?,
        })
    })?;
    for index in &mut indexes {
        index.definition = relations::index_definition(index.index);
    }
    Ok(indexes)
}

/// Returns the valid indexes of tables, and names the others in a NOTICE.
fn indexes_of(tables: &[pg_sys::Oid]) -> Result<Vec<ExistingIndex>, UserError> {
    let invalid: Vec<String> =
        read("x.indrelid", tables, false)?.iter().map(|index| index.qualified()).collect();
    if !invalid.is_empty() {
        notice(
            format!("invalid indexes are left out: {}", invalid.join(", ")),
            "No statement uses them, but writes maintain them: REINDEX or DROP them.",
        );
    }
    read("x.indrelid", tables, true)
}

/// Looks up a valid index by its name.
///
/// # Errors
/// 42704 if it does not exist, 55000 if it is invalid.
fn index_named(name: &str) -> Result<Vec<ExistingIndex>, UserError> {
    let index: Vec<pg_sys::Oid> = relations::named(name).into_iter().collect();
    let valid = read("x.indexrelid", &index, true)?;
    if valid.is_empty() && !read("x.indexrelid", &index, false)?.is_empty() {
        let message = format!("index \"{name}\" is invalid");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("No statement uses it, but writes maintain it: REINDEX or DROP it."));
    }
    if valid.is_empty() {
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist"))
            .hint("Names are looked up where the workload's statements find theirs."));
    }
    Ok(valid)
}

/// The copies of tables that duels run on, each in a schema of its own.
struct Copies {
    /// The clients' search_path, behind the copy's schema.
    path: String,
    /// A random number, which makes the schemas' names unique.
    number: u32,
    /// The argument of the call.
    run_as: Option<String>,
    /// The role of the clients, which needs privileges on the copies.
    clients: Role,
    /// The names that the scripts could use for tables.
    named: BTreeSet<(String, String)>,
    /// Whether all indexes are examined, so that one without copies is no error.
    are_of_all: bool,
}

/// gin_pending_list_limit on copies. With the default of 4 MB a duel of a few seconds ends before a pending list is flushed,
/// which is most of what a GIN index costs. Flushes of 1 MB cost as much per row, those of 256 kB twice as much.
const PENDING_LIST: &str = "1MB";

impl Copies {
    /// Returns the schema of the copy with or without the index at `place`.
    fn schema(&self, place: usize, with: bool) -> String {
        let suffix = if with { "with" } else { "without" };
        format!("bench_copy_{:08x}_{place}_{suffix}", self.number)
    }

    fn path_of(&self, place: usize, with: bool) -> String {
        guc::search_path_with(&[self.schema(place, with).as_str()], &self.path)
    }

    /// Returns the schemas to create for a table's copies, and the statements that make and drop the copies.
    fn sql(
        &self,
        table: &Table,
        place: usize,
        without: pg_sys::Oid,
    ) -> Result<(Vec<String>, AppliedSql), UserError> {
        let hand = hand_of(table, self.run_as.as_deref())?;
        let (mut apply, mut revert, mut schemas) = (Vec::new(), Vec::new(), Vec::new());
        for (with, left_out) in [(true, pg_sys::InvalidOid), (false, without)] {
            let schema = self.schema(place, with);
            let quoted = quote_identifier(&schema);
            let copy = format!("{quoted}.{}", quote_identifier(&table.name));
            if !superuser() {
                apply.push(format!("CREATE SCHEMA {quoted}"));
            }
            apply.push(copy_text(table.oid, &schema, left_out)?);
            if hand.role.oid != self.clients.oid {
                let clients = quote_identifier(&self.clients.name);
                apply.push(format!(
                    "GRANT USAGE ON SCHEMA {quoted} TO {clients}; \
                     GRANT SELECT, INSERT, UPDATE, DELETE ON {copy} TO {clients}"
                ));
            }
            apply.push(format!("VACUUM (ANALYZE) {copy}"));
            revert.push(format!("DROP SCHEMA {quoted} CASCADE"));
            schemas.push(schema);
        }
        // In a superuser's call the leader creates the schemas, so that the hand needs no CREATE on the database.
        schemas.retain(|_| superuser());
        Ok((schemas, AppliedSql { apply, revert }))
    }

    /// Returns the reason if the workload would use the table itself instead of its copy.
    fn reason_without_copy(&self, table: &Table) -> Option<String> {
        let is_named = self.named.contains(&(table.schema.clone(), table.name.clone()));
        is_named.then(|| {
            format!("the workload names {} with its schema, and would not find a copy", table.qualified())
        })
    }

    /// Returns the duel between the copies. The planner does not see the index, so that the difference is its cost for writes.
    fn duel(&self, place: usize, index: &str) -> Result<Duel, UserError> {
        let hidden = format!("{}.{}", quote_identifier(&self.schema(place, true)), quote_identifier(index));
        let arm = |with: bool| json!({"search_path": self.path_of(place, with), "gin_pending_list_limit": PENDING_LIST});
        let mut with = arm(true);
        with["hide_indexes"] = json!([hidden]);
        Duel::new(&with, &arm(false))
    }
}

/// Returns the role that makes a table's copies, with whose rights functions of columns, constraints and indexes are executed.
///
/// # Errors
/// Those of [`role_for`], and 42501 if in a superuser's call this role may not read the table.
fn hand_of(table: &Table, run_as: Option<&str>) -> Result<HandRole, UserError> {
    let qualified = table.qualified();
    let owner = owner_of_table(&qualified)?;
    let hand = role_for(run_as, || Ok(owner.clone()))?;
    if run_as.is_some() || !superuser() {
        return Ok(hand);
    }
    let sql = "SELECT has_schema_privilege($1, $2::text, 'USAGE'), \
                   has_table_privilege($1, $3::oid, 'SELECT')";
    let (role, owner) = (&hand.role, owner.map(|owner| owner.name).unwrap_or_default());
    let arguments = [pg_sys::Oid::from(role.oid).into(), table.schema.as_str().into(), table.oid.into()];
    let may = fetch_all(sql, &arguments, |row| Ok((row.get::<bool>(1)?, row.get::<bool>(2)?)))?;
    let (may_use, may_read) = may.into_iter().next().unwrap_or_default();
    let grantee = quote_identifier(&role.name);
    let grants = [
        (may_use, format!("GRANT USAGE ON SCHEMA {} TO {grantee}", quote_identifier(&table.schema))),
        (may_read, format!("GRANT SELECT ON {qualified} TO {grantee}")),
    ];
    let missing: Vec<String> =
        grants.into_iter().filter(|(may, _)| *may != Some(true)).map(|(_, grant)| grant).collect();
    if missing.is_empty() {
        return Ok(hand);
    }
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, format!("permission denied to copy table {qualified}"))
        .detail(format!(
            "Its copies are made by role \"{}\", for its owner \"{owner}\" has special rights, which functions of its columns, \
             constraints and indexes would have as well.",
            role.name
        ))
        .hint(format!(
            "{}. Or pass run_as => {}, if nobody else can create objects that the table and the workload use.",
            missing.join("; "),
            quote_literal(&owner)
        )))
}

/// Returns the names of an index's two variants.
fn variant_names(index: &str) -> (String, String) {
    (format!("{index}, reads"), format!("{index}, writes"))
}

/// Returns the question about an existing index and its variants: reads on the table itself, writes on copies.
fn existing(
    index: &ExistingIndex,
    copies: &Copies,
    place: usize,
) -> Result<(AskedIndex, Vec<Variant>), UserError> {
    let name = index.qualified();
    let (reads, writes) = variant_names(&name);
    let reads_variant = Variant {
        name: reads.clone(),
        duel: Some(Duel::new(&json!({}), &json!({"hide_indexes": [name]}))?),
        ..Variant::default()
    };
    let mut variants = vec![reads_variant];
    let sql = match copies.reason_without_copy(&index.table) {
        Some(reason) => Err(reason),
        None => match copies.sql(&index.table, place, index.index) {
            // The other indexes are measured nevertheless.
            Err(error) if copies.are_of_all && error.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE => {
                Err(format!("{}. {}", error.message, error.hint.unwrap_or_default()))
            }
            made => Ok(made?),
        },
    };
    let unmeasured = match sql {
        Err(reason) => Some(reason),
        Ok((schemas, sql)) => {
            variants.push(Variant {
                name: writes.clone(),
                schemas,
                sql: Some(sql),
                duel: Some(copies.duel(place, &index.name)?),
                ..Variant::default()
            });
            None
        }
    };
    let table = index.table.qualified();
    let definition = index.definition.clone();
    let asked = AskedIndex { name, definition, bytes: index.bytes, table, reads, writes, unmeasured };
    Ok((asked, variants))
}

/// Returns the question about a new index and its variants, both on copies.
fn candidate(text: &str, path: &str, copies: &Copies) -> Result<(AskedIndex, [Variant; 2]), UserError> {
    const EXAMPLE: &str = "For example: index => 'CREATE INDEX pk_by_time ON pk (crt_time)'.";
    let NamedIndex { name, table: table_name } = named_index(text)?.ok_or_else(|| {
        let message = "a new index must be one CREATE INDEX with a name, on a table without a schema";
        UserError::invalid(message).hint(EXAMPLE)
    })?;
    let sql = "SELECT c.oid, n.nspname::text FROM pg_class c JOIN pg_namespace n \
               ON n.oid = c.relnamespace WHERE c.oid = $1";
    let row = as_session_of(&copies.clients, || {
        with_search_path(path, || {
            let table = relations::named(&quote_identifier(&table_name));
            select_one::<(pg_sys::Oid, String)>(sql, &[table.into()])
        })
    })?;
    let Some((oid, schema)) = row else {
        return Err(UserError::new(
            sqlstate::UNDEFINED_TABLE,
            format!("table \"{table_name}\" does not exist"),
        )
        .hint("Names are looked up where the workload's statements find theirs."));
    };
    let (reads, writes) = variant_names(&quote_identifier(&name));
    let table = Table { oid, schema, name: table_name };
    if let Some(reason) = copies.reason_without_copy(&table) {
        let message = format!("index \"{name}\" cannot be tried on a copy of its table");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .detail(format!("{reason}."))
            .hint("Name the tables without their schemas, and give it by search_path."));
    }
    let (schemas, mut sql) = copies.sql(&table, 0, pg_sys::InvalidOid)?;
    // The hand's search_path begins with the schema of the copy with the index.
    sql.apply.push(text.to_owned());
    sql.apply.push(format!(
        "ANALYZE {}.{}",
        quote_identifier(&copies.schema(0, true)),
        quote_identifier(&table.name)
    ));
    let mut settings = Map::new();
    settings.insert("search_path".to_owned(), copies.path_of(0, true).into());
    let hidden = format!("{}.{}", quote_identifier(&copies.schema(0, true)), quote_identifier(&name));
    let reads_duel = Duel::new(&json!({}), &json!({"hide_indexes": [hidden]}))?;
    let variant = |name: &String, duel: Duel| Variant {
        name: name.clone(),
        settings: settings.clone(),
        schemas: schemas.clone(),
        sql: Some(sql.clone()),
        duel: Some(duel),
        ..Variant::default()
    };
    let variants = [variant(&reads, reads_duel), variant(&writes, copies.duel(0, &name)?)];
    let table = table.qualified();
    let definition = text.to_owned();
    Ok((AskedIndex { name, definition, bytes: None, table, reads, writes, unmeasured: None }, variants))
}

// Copies of a table for duels about its indexes: rows, constraints and defaults, with all indexes but one.

/// Returns the statements that make a copy, in their order. Indexes keep their names; unique ones lose their constraints. Access
/// method, storage parameters and tablespaces are those of the table: HOT updates and waits depend on them.
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

/// Returns a text that copies a table into a schema in one transaction, with all of its indexes except `without` (0: with all).
/// Unqualified names in it are looked up in pg_catalog only.
///
/// # Errors
/// 42809 for a relation that is no table.
fn copy_text(table: pg_sys::Oid, schema: &str, without: pg_sys::Oid) -> Result<String, UserError> {
    let statements = fetch::<Vec<String>>(STATEMENTS, &[table.into(), schema.into(), without.into()])?;
    let Some(statements) = statements else {
        let message = format!("relation with OID {} is not a table that can be copied", table.to_u32());
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    };
    let path = format!(
        "SELECT pg_catalog.set_config('search_path', {}, true)",
        quote_literal(&SAFE_PATH.to_string_lossy())
    );
    Ok([vec![path], statements].concat().join("; "))
}
