//! The xmin horizon while a session waits for what it has launched.

use crate::error::warn;
use crate::server::horizon::{ISOLATION, Releasable, can_release};

/// Making the call a statement of its own is of no use where this is the session's default.
const READ_COMMITTED: &str = "Meanwhile, dead rows cannot be removed, which slows update workloads. \
     Call it at isolation level READ COMMITTED: SET default_transaction_isolation = 'read committed'.";

/// The right to let the horizon go while this session waits; where it has to be held back, a WARNING with what to do.
pub fn releasable_or_warn(hint: &str) -> Option<Releasable> {
    match can_release() {
        Ok(releasable) => Some(releasable),
        Err(why) => {
            let hint = if why == ISOLATION { READ_COMMITTED } else { hint };
            warn(format!("this call holds back the xmin horizon while it waits, because {why}"), hint);
            None
        }
    }
}
