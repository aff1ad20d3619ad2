//! The repository's files, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the files of a folder of the repository hold whose names have that ending.
pub fn texts(folder: &str, ending: &str) -> impl Iterator<Item = String> {
    let is_asked_for = move |path: &PathBuf| path.extension().is_some_and(|has| has == ending);
    files(&root().join(folder)).into_iter().filter(is_asked_for).map(text)
}

/// The arguments that functions for a run have in the install SQL, where it says `@run_arguments@`.
pub fn run_arguments() -> String {
    text(root().join("src/schema/run_arguments.sql"))
}

/// What a file holds.
pub fn text(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

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
