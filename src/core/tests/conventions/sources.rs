//! The repository's files, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a folder and of those below it, in order, without what cargo builds.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.join("CACHEDIR.TAG").exists())
        .collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
