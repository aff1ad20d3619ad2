//! Runs, loads and sweeps as their rows tell of them, for those who wait for one, stop it, or ask how it went.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::{as_owner, may_see};
use crate::server::database::is_standby;
use crate::server::roles::{self, acts_for};
use crate::server::rows::select_one;
use crate::shm::{Segment, Work, build, is_under_way};

/// How to find the leader of what may be under way.
pub struct WorkHandle {
    pub work: Work,
    pub segment: u32,
    /// As the row has it.
    pub status: String,
    /// Its present name, or the one that was kept.
    pub role: String,
    pub owner_oid: pg_sys::Oid,
}

impl WorkHandle {
    /// # Errors
    /// 55000 where the leader is of another build of the library, and so not to be reached from here.
    pub fn check_build(&self) -> Result<(), UserError> {
        if is_open(&self.status) && build::is_led_by_other(self.segment, self.work) {
            return Err(build::started_by_other(self.work));
        }
        Ok(())
    }

    /// # Errors
    /// 42501 for what the caller may not see.
    fn check_visible(&self) -> Result<(), UserError> {
        if may_see(self.owner_oid) {
            return Ok(());
        }
        let message = format!("permission denied for {}", self.work);
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .hint(format!("This requires the privileges of role \"{}\" or of pg_read_all_stats.", self.role)))
    }

    /// # Errors
    /// 42501 for what the caller may not stop.
    pub fn check_may_stop(&self) -> Result<(), UserError> {
        if may_stop(self.owner_oid) {
            return Ok(());
        }
        Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("{} belongs to role \"{}\"", self.work, self.role),
        )
        .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."))
    }
}

/// The row of a run, a load or a sweep.
///
/// # Errors
/// 42704 for one that does not exist.
pub fn handle_of(work: Work) -> Result<WorkHandle, UserError> {
    let noun = work.noun();
    let found = as_owner(|| {
        let sql = format!(
            "SELECT segment, status, bench_internal.role_name(owner_oid, role), coalesce(owner_oid, 0) \
             FROM bench_internal.{noun}_log WHERE {noun}_id = $1"
        );
        select_one::<(i64, String, String, pg_sys::Oid)>(&sql, &[work.id().into()])
    })?;
    let (segment, status, role, owner_oid) = found.ok_or_else(|| missing(work))?;
    Ok(WorkHandle { work, segment: segment as u32, status, role, owner_oid })
}

/// The error for one that does not exist.
pub(super) fn missing(work: Work) -> UserError {
    UserError::new(sqlstate::UNDEFINED_OBJECT, format!("{work} does not exist"))
}

/// The row of one that the caller may see.
///
/// # Errors
/// 42704 for one that does not exist, 42501 for one that the caller may not see.
pub fn visible(work: Work) -> Result<WorkHandle, UserError> {
    let handle = handle_of(work)?;
    handle.check_visible().map(|()| handle)
}

/// # Errors
/// 42704 for a run that does not exist, 42501 for one that the caller may not see.
pub fn check_visible(run_id: i64) -> Result<(), UserError> {
    visible(Work::Run(run_id)).map(drop)
}

/// Its status, 'crashed' included.
pub fn status(work: Work) -> Result<String, UserError> {
    let handle = handle_of(work)?;
    current_status(work, handle.status, handle.segment)
}

/// What its row says, unless its leader is gone.
///
/// # Errors
/// 42501 for what the caller may not see.
pub fn current_status(work: Work, status: String, segment: u32) -> Result<String, UserError> {
    // A standby cannot know, so there the row stands as it is.
    if !is_open(&status) || is_standby() || is_led(work, segment) {
        return Ok(status);
    }
    // The row may have been read before the work ended well.
    if let Ok(latest) = handle_of(work) {
        // bench.audits looks at others' runs, too. It has the segment from the row, which tells it to nobody.
        if latest.segment != segment {
            latest.check_visible()?;
        }
        if !is_open(&latest.status) {
            return Ok(latest.status);
        }
    }
    Ok("crashed".to_owned())
}

/// Whether a row with this status has not been closed.
pub fn is_open(status: &str) -> bool {
    matches!(status, "starting" | "running")
}

/// Whether its leader is at work, by the segment that its row names.
pub fn is_led(work: Work, segment: u32) -> bool {
    let is_led = |segment: &Segment| segment.is_of(work) && is_under_way(segment);
    Segment::peek(segment, is_led) == Some(true) || build::is_led_by_other(segment, work)
}

/// Whether the current role may stop what is of another role.
pub fn may_stop(role: pg_sys::Oid) -> bool {
    // As pg_terminate_backend: pg_signal_backend reaches everybody but superusers.
    acts_for(role) || acts_for(roles::SIGNAL_BACKEND) && !roles::is_superuser(role)
}
