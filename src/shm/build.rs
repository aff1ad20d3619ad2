//! What a segment is for, and which build of the library it is of.

use std::fmt;
use std::mem::{offset_of, size_of};
use std::sync::atomic::Ordering::*;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::cells::{Header, MAGIC};
use crate::server::database;
use crate::server::process::is_backend;

/// The work that a segment's workers do, with the id of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Run(i64),
    Load(i64),
    Sweep(i64),
}

impl Work {
    /// What it is called, also in the names of its table and functions.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Load(_) => "load",
            Self::Sweep(_) => "sweep",
        }
    }

    pub fn id(self) -> i64 {
        let (Self::Run(id) | Self::Load(id) | Self::Sweep(id)) = self;
        id
    }

    /// As the head of a segment has it, which other builds of the library read as well: ids of runs, those of loads below 0,
    /// and those of sweeps from the smallest number on.
    pub(super) fn word(self) -> i64 {
        match self {
            Self::Run(run_id) => run_id,
            Self::Load(load_id) => -load_id,
            Self::Sweep(sweep_id) => i64::MIN + sweep_id,
        }
    }

    pub(super) fn from_word(word: i64) -> Option<Self> {
        match word {
            0 => None,
            1.. => Some(Self::Run(word)),
            _ if word > i64::MIN / 2 => Some(Self::Load(-word)),
            _ => Some(Self::Sweep(word.wrapping_sub(i64::MIN))),
        }
    }
}

/// "run 1" or the like.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.noun(), self.id())
    }
}

// Which build of the library a segment is of. A session keeps the library that it has loaded, whatever is installed
// meanwhile, and a worker that it asks for loads what is installed then: the two may not understand each other.

/// Found in the library's file by its first words; the rest are 16 hexadecimal digits.
#[used]
static BUILD: [u8; TITLE.len() + 16] = *concat_bytes();

const TITLE: &[u8] = b"pgbench_ext build ";

const fn concat_bytes() -> &'static [u8; TITLE.len() + 16] {
    match concat!("pgbench_ext build ", env!("PGBENCH_EXT_BUILD")).as_bytes().first_chunk() {
        Some(bytes) => bytes,
        None => panic!("the build's identity has 16 digits"),
    }
}

/// This library's build.
pub fn own() -> u64 {
    // SAFETY: a live static. Volatile: what counts is what the file has.
    let bytes = unsafe { (&raw const BUILD).read_volatile() };
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
    bytes[TITLE.len()..].iter().fold(0, |build, byte| build << 4 | u64::from(digit(byte)))
}

/// What every build knows of a segment: the first fields of [`Header`], whose places never change.
#[repr(C)]
struct BuildHeader {
    magic: AtomicU64,
    build: AtomicU64,
    refused_by: AtomicU64,
    claimed: AtomicI64,
    announced: AtomicI64,
    coordinator_pid: AtomicI32,
    database: AtomicU32,
}

const _: () = assert!(
    offset_of!(BuildHeader, magic) == offset_of!(Header, magic)
        && offset_of!(BuildHeader, build) == offset_of!(Header, build)
        && offset_of!(BuildHeader, refused_by) == offset_of!(Header, refused_by)
        && offset_of!(BuildHeader, claimed) == offset_of!(Header, claimed)
        && offset_of!(BuildHeader, announced) == offset_of!(Header, announced)
        && offset_of!(BuildHeader, coordinator_pid) == offset_of!(Header, coordinator_pid)
        && offset_of!(BuildHeader, database) == offset_of!(Header, database)
);

/// Looks into a segment of another build; `None` where there is none, or it is of this one.
fn look<T>(handle: u32, look: impl FnOnce(&BuildHeader) -> T) -> Option<T> {
    // SAFETY: as in `Segment::attach` and `Segment::peek`. The head is read only where it fits, and nothing beyond it.
    unsafe {
        let mapped = pg_sys::dsm_find_mapping(handle);
        let raw = if mapped.is_null() { pg_sys::dsm_attach(handle) } else { mapped };
        if raw.is_null() {
            return None;
        }
        let mut found = None;
        if pg_sys::dsm_segment_map_length(raw) >= size_of::<BuildHeader>() {
            let head = &*pg_sys::dsm_segment_address(raw).cast::<BuildHeader>();
            if head.magic.load(Acquire) == MAGIC && head.build.load(Relaxed) != own() {
                found = Some(look(head));
            }
        }
        if mapped.is_null() {
            pg_sys::dsm_detach(raw);
        }
        found
    }
}

/// Whether a leader of another build is at work on this run, load or sweep, in this database.
pub fn is_led_by_other(handle: u32, work: Work) -> bool {
    let database = database::oid().to_u32();
    look(handle, |head| {
        head.claimed.load(Acquire) == work.word()
            && head.database.load(Relaxed) == database
            && is_backend(head.coordinator_pid.load(Acquire))
    }) == Some(true)
}

/// Leaves word in a segment that a worker of this build cannot serve it.
///
/// # Errors
/// 55000 when it is of another build.
pub fn refuse(handle: u32) -> Result<(), UserError> {
    let other = look(handle, |head| {
        head.refused_by.store(own(), Release);
        head.build.load(Relaxed)
    });
    other.map_or(Ok(()), |session| Err(installed_meanwhile(session, own())))
}

/// The error for what was started by another build and cannot be reached from here.
pub fn started_by_other(work: Work) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("{work} was started with another build of pgbench_ext"),
    )
    .detail(format!("This session has build {:016x}.", own()))
    .hint("Wait for it to end, or end it with pg_terminate_backend(pid): see pg_stat_activity.")
}

pub(super) fn installed_meanwhile(session: u64, worker: u64) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        "another build of pgbench_ext was installed after this session had loaded its own",
    )
    .detail(format!("The session has build {session:016x}, its background worker build {worker:016x}."))
    .hint("Reconnect. Where shared_preload_libraries names pgbench_ext, restart the server.")
}
