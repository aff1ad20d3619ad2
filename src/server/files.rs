//! Files that users name: opened without waiting for anybody, and regular ones only. A path may lead to a pipe without a
//! writer, to a terminal, or to a device without an end.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A regular file, opened to be read, and what is known of it. What the path leads to is looked at when it is open, so that
/// nobody puts something else in its place.
///
/// # Errors
/// Those of the system; [`ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "It is not a regular file"));
    }
    Ok((file, metadata))
}

/// A file that lets itself be interrupted.
pub struct Interruptible(pub File);

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        pgrx::check_for_interrupts!();
        self.0.read(buffer)
    }
}

/// All of a file that has at most so many bytes.
///
/// # Errors
/// Those of the system; [`ErrorKind::FileTooLarge`] for a longer one, of which no more is read.
pub fn read_small(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Interruptible(file).take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("It has more than {most} bytes")));
    }
    Ok(bytes)
}
