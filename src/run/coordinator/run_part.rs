//! What a run that is another node's part of one does besides: waits for the word to begin, and ends when that node is
//! not heard of any more.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::PartOf;

use crate::server::process::{current_timestamp, now_ns};
use crate::shm::Header;

/// Longer than a link takes for a question that is not answered and the next one.
const LEASE_NS: i64 = 20_000_000_000;

/// # Errors
/// 08006 when the node that asked has been silent for too long.
pub fn check_heard(header: &Header, part_of: &PartOf) -> Result<(), UserError> {
    if now_ns() - header.heard_ns.load(Acquire) <= LEASE_NS {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::CONNECTION_FAILURE,
        format!(
            "node {} has not asked for this part of its run {} for {} s",
            part_of.name,
            part_of.run_id,
            LEASE_NS / 1_000_000_000
        ),
    ))
}

/// When the clients' time is to begin, by CLOCK_MONOTONIC; `None` while it has not been said.
pub fn begins_ns(header: &Header) -> Option<i64> {
    let begins_us = header.begins_us.load(Acquire);
    (begins_us != 0).then(|| now_ns() + (begins_us - current_timestamp()) * 1000)
}
