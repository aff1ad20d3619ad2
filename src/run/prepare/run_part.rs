//! This node's part of another node's run.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::part::PartRequest;
use bench_model::spec::{FixtureSpec, RunSpec};
use pgrx::pg_sys;

use super::run::{PreparedRun, start_prepared};
use super::{settings, workload};
use crate::guard::client_role::is_client_role;
use crate::guard::rights::is_special;
use crate::guard::session_role::special;
use crate::launch::checks::{check_connection_limit, check_length, check_role, check_server};
use crate::launch::role_limit;
use crate::run::coordinator;
use crate::run::feeders;
use crate::run::feeders::RowLimit;
use crate::run::nodes::node_connectivity;
use crate::server::roles::{self, current_role_oid};
use crate::server::{database, worker_slots};
use crate::store;

/// Starts this node's part of another's run; its id.
///
/// # Errors
/// What kept it from going on so far that it has an id.
pub fn start(request: serde_json::Value) -> Result<i64, UserError> {
    let request: PartRequest = serde_json::from_value(request).map_err(|e| invalid(e.to_string()))?;
    let PartRequest { spec, tables, kept } = request.checked()?;
    if !store::may_run()? {
        return Err(node_connectivity::may_not_run());
    }
    if spec.part_of.is_none() {
        return Err(invalid("part_of is missing".to_owned()));
    }
    check_server()?;
    check_length(spec.scripts.iter().map(|script| script.source.as_str()))?;
    let names: Vec<String> = spec.fixtures.iter().map(|fixture| fixture.name.clone()).collect();
    let checked = workload::check_scripts(&spec.scripts, &spec.options)?;
    workload::check_rows(&spec.fixtures, &spec.scripts, &checked)?;
    // The node that asks is a session of its role here: nobody else has called.
    settings::check(&spec.options.settings, spec.options.driver, spec.options.nodes, None)?;
    // Here, too, only where this node's superusers have named the role.
    if is_special(current_role_oid())? && !is_client_role(&roles::current_role()) {
        return Err(special(&roles::current_role()));
    }
    check_role()?;
    check_connection_limit(spec.options.clients)?;
    role_limit::check(spec.options.clients.into())?;
    worker_slots::check_slots(u64::from(spec.options.clients) + 1, coordinator::KIND.noun)?;
    let fixtures = spec
        .fixtures
        .iter()
        .zip(tables)
        .map(|(fixture, names)| Ok(FixtureSpec { tables: tables_of(fixture, &names)?, ..fixture.clone() }))
        .collect::<Result<Vec<_>, UserError>>()?;
    let mut spec = RunSpec {
        fixtures,
        may_be_special: is_client_role(&roles::current_role()),
        role: roles::current_role(),
        role_oid: current_role_oid().to_u32(),
        database_oid: database::oid().to_u32(),
        starter: Default::default(),
        max_clients: role_limit::limit()?,
        ..spec
    };
    let fed = feeders::read_lent(&mut spec, RowLimit::All, kept)?;
    workload::check_variables(&spec.scripts, &names, &spec.options, &fed.variables)?;
    // With its id it can be asked why it has failed, and dropped.
    let (result, run_id) =
        start_prepared(&PreparedRun { spec, commands: checked.commands, secrets: Default::default(), fed })?;
    if run_id != 0 { Ok(run_id) } else { result.map(|()| run_id) }
}

fn invalid(message: String) -> UserError {
    UserError::invalid(format!("invalid request for a part of a run: {message}"))
}

/// The tables of a fixture as they are on this node. What the node that asks has made sure of holds there: schemas and
/// privileges are each node's own.
fn tables_of(fixture: &FixtureSpec, names: &[(String, String)]) -> Result<Vec<u32>, UserError> {
    let schemas: BTreeSet<_> = fixture.schema.iter().chain(names.iter().map(|(schema, _)| schema)).collect();
    for schema in schemas {
        workload::check_usage(schema, &fixture.name)?;
    }
    names
        .iter()
        .map(|(schema, name)| {
            store::table_of(schema, name)?.map(pg_sys::Oid::to_u32).ok_or_else(|| {
                let message = format!("table {schema}.{name} does not exist on this node");
                UserError::new(sqlstate::UNDEFINED_TABLE, message)
                    .hint("Load the fixture distributed: options => '{\"distribute\": …}'.")
            })
        })
        .collect()
}
