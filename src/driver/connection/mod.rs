//! Connections to servers: where they listen, and bytes to and from them.

mod address;
mod blocking;
mod cancel;
mod failure;
mod link;
mod polled;
mod route;
mod socket;

pub use address::{candidates, this_server};
pub use blocking::BlockingSession;
pub use cancel::{CancelRequest, cancel};
pub use failure::{failed, failed_by};
pub use link::{Done, Link};
pub use polled::PolledSession;
pub use route::Route;
