//! Runs on a Citus cluster: which nodes they run on, whether those can bear it, and one instant for all to begin at.

mod clock;
mod fan_out;
mod limits;
mod machines;
mod nodes;

pub use clock::{ClockOffset, ClockReading, clock_offset, start_margin_us};
pub use fan_out::FanOut;
pub use limits::{Demand, Limits, check_connections, check_pool, check_worker_slots, room_for};
pub use machines::{Tenant, machines};
pub use nodes::{ClusterSpec, NodeSpec, Nodes, PartOf, place, sample_interval_secs};

#[cfg(test)]
mod tests;
