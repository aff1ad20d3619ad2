//! What every background worker begins with: the segment, the connection to its database as its role, and the settings of a
//! session that does this project's own work.

mod attachment;
pub mod drop_extension;
pub mod workers;

pub use attachment::{
    WorkerContext, attach, attach_client, attach_unconnected, connect_after_crash, isolate_session,
    report_fatal_error,
};
pub use workers::stop_reason;
