//! Files named by users, which must be regular: a path may lead to a pipe without a writer, a terminal, or an endless device.

use std::ffi::CStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading, and returns it with its metadata. Does not block, and checks the type of the open file, so
/// that the path cannot be replaced in between.
///
/// # Errors
/// Those of the system; [`ErrorKind::InvalidInput`] for other files than regular ones.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "It is not a regular file"));
    }
    Ok((file, metadata))
}

/// Returns the bytes that are free on the file system of a path for ordinary users; `None` if the system does not say.
pub fn free_bytes(path: &CStr) -> Option<i64> {
    // SAFETY: the system fills the structure, of which all bit patterns are valid.
    unsafe {
        let mut status: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut status) != 0 {
            return None;
        }
        i64::try_from(status.f_bavail.checked_mul(status.f_frsize)?).ok()
    }
}

/// A file whose reads check for interrupts.
pub struct Interruptible(pub File);

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        pgrx::check_for_interrupts!();
        self.0.read(buffer)
    }
}

/// Reads a whole file of at most `max_bytes`.
///
/// # Errors
/// Those of the system; [`ErrorKind::FileTooLarge`] for a longer file.
pub fn read_small(file: File, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Interruptible(file).take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("It has more than {max_bytes} bytes")));
    }
    Ok(bytes)
}
