//! How many clients there is room for, where nobody has said how many there are to be.

use bench_base::error::UserError;
use bench_model::cluster::{Nodes, room_for};

use crate::launch::checks::connection_limit;
use crate::observe::machine::{self, processors_granted};
use crate::run::nodes::cluster_spec;
use crate::server::background_worker::free_slots;
use crate::server::roles::superuser;
use crate::store;

/// Clients for each processor: enough to keep it busy while some of them wait.
const CLIENTS_PER_PROCESSOR: u32 = 8;

/// Workers beside the clients: the sweep's, the run's, and one in reserve.
const OTHERS: u64 = 3;

/// The clients of a sweep's runs with this driver, on these nodes: as many as keep the processors busy, within the worker
/// slots or the connections that are free and the role's CONNECTION LIMIT. What a target has to give is not known here.
///
/// # Errors
/// Those of questions to the server. What is wrong with the arguments is said where they are checked.
pub fn clients(driver: Option<&str>, has_target: bool, nodes: Option<&str>) -> Result<i32, UserError> {
    let wanted = CLIENTS_PER_PROCESSOR.saturating_mul(processors_granted());
    let room = match (driver, nodes) {
        (Some("wire"), _) if has_target => wanted,
        (Some("wire"), _) => {
            let is_superuser = superuser();
            store::as_owner(|| machine::limits(is_superuser))?.free_connections()
        }
        (_, Some("all")) => on_nodes(wanted, Nodes::All)?,
        (_, Some("workers")) => on_nodes(wanted, Nodes::Workers)?,
        _ => u32::try_from(free_slots().saturating_sub(OTHERS)).unwrap_or(u32::MAX),
    };
    let limit = if has_target { None } else { connection_limit()? };
    let clients = wanted.min(room).min(limit.unwrap_or(u32::MAX)).max(1);
    Ok(i32::try_from(clients).unwrap_or(i32::MAX))
}

/// Clients on each of the chosen nodes; 1 where the nodes do not say, and then the run's own checks say why.
fn on_nodes(wanted: u32, chosen: Nodes) -> Result<u32, UserError> {
    Ok(cluster_spec::limits(chosen)?.map_or(1, |nodes| room_for(wanted, &nodes, chosen)))
}
