//! The xmin horizon while a session waits for what it has launched.

use crate::error::warn;
use crate::server::horizon::{Releasable, can_release};

/// The right to let the horizon go while this session waits; where it has to be held back, a WARNING with what to do.
pub fn releasable_or_warn(hint: &str) -> Option<Releasable> {
    match can_release() {
        Ok(releasable) => Some(releasable),
        Err(why) => {
            warn(format!("this call holds back the xmin horizon while it waits, because {why}"), hint);
            None
        }
    }
}
