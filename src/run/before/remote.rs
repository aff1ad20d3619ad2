//! The state that a run over connections to another server begins with: the steps are statements to that server, by the
//! role of the user mapping.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Before, FixtureSpec, RunSpec, TargetSpec};
use bench_protocol::foreign_server::Secrets;
use serde::Deserialize;

use crate::driver::connection::{BlockingSession, Route};
use crate::error::internal;
use crate::server::spi::{quote_identifier, quote_literal};

/// A table of a fixture on the target.
#[derive(Deserialize)]
struct RemoteTable {
    /// Qualified and quoted.
    name: String,
    /// It is the one that pgbench's own scripts fill.
    is_history: bool,
    may_vacuum: bool,
    may_truncate: bool,
    may_prewarm: bool,
    /// What has blocks of it: the table or its partitions, their indexes and TOAST tables.
    parts: Vec<u32>,
}

/// A session with the server that a run's connections lead to.
struct Elsewhere<'a> {
    session: BlockingSession,
    target: &'a TargetSpec,
    fixtures: &'a [FixtureSpec],
}

/// Does the steps.
///
/// # Errors
/// As [`check`]; those of the server.
pub fn prepare(
    target: &TargetSpec,
    run: &RunSpec,
    secrets: &Secrets,
    steps: &[Before],
) -> Result<(), UserError> {
    each_step(target, run, secrets, steps, |on, step| {
        for statement in on.statements(step)? {
            on.session.value(&statement)?;
        }
        Ok(())
    })
}

/// Whether the role may have a checkpoint made there.
///
/// # Errors
/// Those of the server.
pub fn may_checkpoint(target: &TargetSpec, run: &RunSpec, secrets: &Secrets) -> Result<bool, UserError> {
    let may = check(target, run, secrets, &[Before::Checkpoint]);
    match may {
        Err(error) if error.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE => Ok(false),
        may => may.map(|()| true),
    }
}

/// Finds out whether the steps can be done, before any.
///
/// # Errors
/// 0A000 for a load, 42501 for what the role may not do there, 55000 for what is not there.
pub fn check(
    target: &TargetSpec,
    run: &RunSpec,
    secrets: &Secrets,
    steps: &[Before],
) -> Result<(), UserError> {
    refuse_load(&target.name, steps)?;
    each_step(target, run, secrets, steps, |on, step| on.statements(step).map(drop))
}

/// # Errors
/// 0A000 for a load.
pub fn refuse_load(target: &str, steps: &[Before]) -> Result<(), UserError> {
    if !steps.contains(&Before::Reload) {
        return Ok(());
    }
    Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, "before => 'reload' is not supported with target")
        .detail("A load needs background workers of the server that has the tables.")
        .hint(format!("Call bench.load on target \"{target}\" before the run.")))
}

/// The error for TRUNCATE before a run on a fixture that was loaded with rows.
pub fn has_rows(fixture: &str) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("fixture \"{fixture}\" was loaded with rows, which TRUNCATE would remove"),
    )
}

/// Calls `visit` for each of the steps with a session, for which a step is not begun where there is none.
fn each_step(
    target: &TargetSpec,
    run: &RunSpec,
    secrets: &Secrets,
    steps: &[Before],
    visit: impl Fn(&mut Elsewhere, Before) -> Result<(), UserError>,
) -> Result<(), UserError> {
    if steps.is_empty() {
        return Ok(());
    }
    let route = Route::of_steps(target, secrets)?;
    let session = BlockingSession::connect(route)?;
    session.check()?;
    let mut on = Elsewhere { session, target, fixtures: &run.fixtures };
    for step in steps {
        visit(&mut on, *step).map_err(|error| named(target, *step, error))?;
    }
    on.session.close();
    Ok(())
}

/// An error with the target's name and the step's.
fn named(target: &TargetSpec, step: Before, error: UserError) -> UserError {
    let detail = format!("Target \"{}\" was prepared by before => '{}'.", target.name, step.as_str());
    let detail = match &error.detail {
        Some(further) => format!("{detail}\n{further}"),
        None => detail,
    };
    error.detail(detail)
}

impl Elsewhere<'_> {
    /// The statements of a step, of which each is for itself.
    fn statements(&mut self, step: Before) -> Result<Vec<String>, UserError> {
        match step {
            Before::Reload => Ok(Vec::new()),
            Before::Truncate => self.truncate(),
            Before::Vacuum => {
                let tables = self.all_tables()?;
                self.check(&tables, |table| table.may_vacuum, "vacuum")?;
                Ok(if tables.is_empty() {
                    Vec::new()
                } else {
                    vec![format!("VACUUM (ANALYZE) {}", names(&tables))]
                })
            }
            Before::Prewarm => self.prewarm(),
            Before::Checkpoint => self.checkpoint(),
        }
    }

    fn truncate(&mut self) -> Result<Vec<String>, UserError> {
        let mut statements = Vec::new();
        for fixture in self.fixtures {
            let is_tpcb = fixture.name == "tpcb";
            if !is_tpcb && fixture.rows != 0 {
                return Err(has_rows(&fixture.name).hint("Load it anew there."));
            }
            let mut tables = self.tables_of(fixture)?;
            tables.retain(|table| !is_tpcb || table.is_history);
            self.check(&tables, |table| table.may_truncate, "truncate")?;
            if !tables.is_empty() {
                statements.push(format!("TRUNCATE {}", names(&tables)));
            }
        }
        Ok(statements)
    }

    fn prewarm(&mut self) -> Result<Vec<String>, UserError> {
        let Some(function) = self.session.own_value(PREWARM)? else {
            let message = format!("extension pg_prewarm is not installed on target \"{}\"", self.target.name);
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .hint("Install it in that database: CREATE EXTENSION pg_prewarm."));
        };
        let tables = self.all_tables()?;
        self.check(&tables, |table| table.may_prewarm, "prewarm")?;
        // With all of its arguments, so that no other function can be meant.
        let of_part = |part: &u32| {
            format!(
                "SELECT {function}({part}::pg_catalog.regclass, 'buffer'::pg_catalog.text, 'main'::pg_catalog.text, NULL::pg_catalog.int8, NULL::pg_catalog.int8)"
            )
        };
        Ok(tables.iter().flat_map(|table| &table.parts).map(of_part).collect())
    }

    fn checkpoint(&mut self) -> Result<Vec<String>, UserError> {
        if self.session.own_value(MAY_CHECKPOINT)?.as_deref() == Some("t") {
            return Ok(vec!["CHECKPOINT".to_owned()]);
        }
        let user = &self.target.options.user;
        let message = format!("role \"{user}\" may not checkpoint target \"{}\"", self.target.name);
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .hint(format!("On its server: GRANT pg_checkpoint TO {}.", quote_identifier(user))))
    }

    /// # Errors
    /// 42501 for the first table with which the role may not do this.
    fn check(
        &self,
        tables: &[RemoteTable],
        may: fn(&RemoteTable) -> bool,
        verb: &str,
    ) -> Result<(), UserError> {
        let Some(table) = tables.iter().find(|table| !may(table)) else { return Ok(()) };
        let (user, name) = (&self.target.options.user, &self.target.name);
        Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("role \"{user}\" may not {verb} {} on target \"{name}\"", table.name),
        )
        .hint("Load the fixture there as that role, into a schema of its own."))
    }

    fn all_tables(&mut self) -> Result<Vec<RemoteTable>, UserError> {
        let of_each = self.fixtures.iter().map(|fixture| self.tables_of(fixture));
        Ok(of_each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The tables of a fixture: those that were loaded there, or pgbench's own on the role's path.
    fn tables_of(&mut self, fixture: &FixtureSpec) -> Result<Vec<RemoteTable>, UserError> {
        let relations = match &fixture.schema {
            Some(schema) => format!(
                "SELECT r::oid FROM bench.fixtures f, unnest(f.relations) r \
                 WHERE f.name::text = {} \
                   AND f.schema::text = {}",
                quote_literal(&fixture.name),
                quote_literal(schema)
            ),
            // Under the role's own search_path.
            None => {
                let tables = self.session.value(PGBENCH_TABLES)?.unwrap_or_default();
                format!("SELECT unnest({}::oid[])", quote_literal(&tables))
            }
        };
        let may_maintain = "has_table_privilege(c.oid, 'MAINTAIN')";
        let knows_maintain = self.target.views.version >= 170_000;
        let asked = TABLES
            .replace("RELATIONS", &relations)
            .replace("MAY_MAINTAIN", if knows_maintain { may_maintain } else { "false" });
        let Some(json) = self.session.own_value(&asked)? else { return Ok(Vec::new()) };
        serde_json::from_str(&json).map_err(|error| internal(error.to_string()))
    }
}

fn names(tables: &[RemoteTable]) -> String {
    tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ")
}

const PGBENCH_TABLES: &str = "SELECT ARRAY[pg_catalog.to_regclass('pgbench_branches'), pg_catalog.to_regclass('pgbench_tellers'), \
     pg_catalog.to_regclass('pgbench_accounts'), pg_catalog.to_regclass('pgbench_history')]::pg_catalog.oid[]";

/// The privileges are those that a VACUUM asks for, which otherwise only warns, and pg_prewarm of a table's indexes.
const TABLES: &str = "SELECT json_agg(json_build_object( \
         'name', format('%I.%I', n.nspname, c.relname), \
         'is_history', c.relname = 'pgbench_history'::name, \
         'may_vacuum', pg_has_role(c.relowner, 'USAGE') OR MAY_MAINTAIN \
             OR (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database d \
                 WHERE d.datname = current_database()), \
         'may_truncate', has_table_privilege(c.oid, 'TRUNCATE'), \
         'may_prewarm', pg_has_role(c.relowner, 'USAGE'), \
         'parts', (WITH leaves AS ( \
                 SELECT l.oid, l.reltoastrelid, l.relkind FROM pg_class l \
                 WHERE l.oid = c.oid \
                    OR l.oid = ANY (ARRAY(SELECT t.relid::oid FROM pg_partition_tree(c.oid) t))), \
             heaps AS (SELECT oid FROM leaves WHERE relkind = ANY (ARRAY['r', 'm']::\"char\"[]) \
                 UNION ALL SELECT reltoastrelid FROM leaves WHERE reltoastrelid <> 0::oid) \
             SELECT coalesce(json_agg(p.oid::int8), '[]'::json) FROM (SELECT oid FROM heaps \
                 UNION ALL SELECT i.indexrelid FROM pg_index i \
                 WHERE i.indrelid = ANY (ARRAY(SELECT oid FROM heaps))) p)) ORDER BY c.oid) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.oid = ANY (ARRAY(RELATIONS)) \
       AND c.relkind = ANY (ARRAY['r', 'p']::\"char\"[])";

/// The function that is the extension's own.
const PREWARM: &str = "SELECT format('%I.%I', n.nspname, p.proname) \
     FROM pg_extension e \
     JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass \
         AND d.refobjid = e.oid AND d.deptype = 'e' \
         AND d.classid = 'pg_proc'::regclass \
     JOIN pg_proc p ON p.oid = d.objid \
     JOIN pg_namespace n ON n.oid = p.pronamespace \
     WHERE e.extname = 'pg_prewarm' AND p.proname = 'pg_prewarm'";

/// Role pg_checkpoint is there since PostgreSQL 15.
const MAY_CHECKPOINT: &str = "SELECT (SELECT r.rolsuper FROM pg_roles r \
         WHERE r.rolname = current_user) \
     OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'pg_checkpoint' \
         AND pg_has_role(r.oid, 'USAGE'))";
