//! Gives the library an identity: hashes of its sources, and of what else it is built from. Stops builds by cargo-pgrx.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // cargo-pgrx would install what it generates from the Rust code, which is nothing: the install SQL is written by hand.
    println!("cargo:rerun-if-env-changed=CARGO_PGRX");
    if env::var_os("CARGO_PGRX").is_some() {
        println!(
            "cargo::error=cargo-pgrx cannot install this extension, whose SQL is written by hand: use `make install`"
        );
    }
    // What a version of the server brought, its successors have: since_16 to since_19.
    let server =
        (15..).find(|version| env::var_os(format!("CARGO_FEATURE_PG{version}")).is_some() || *version == 19);
    for version in 16..=19 {
        println!("cargo:rustc-check-cfg=cfg(since_{version})");
        if server >= Some(version) {
            println!("cargo:rustc-cfg=since_{version}");
        }
    }
    let mut files = vec![PathBuf::from("Cargo.lock"), PathBuf::from("Cargo.toml")];
    collect(Path::new("src"), &mut files);
    collect(Path::new("crates"), &mut files);
    files.sort();
    // A file of SQL that is added is noticed by its folder, one of Rust by the file that names it. Not src as a whole: a
    // changed test would have the library built anew.
    println!("cargo:rerun-if-changed=src/schema/tables");
    println!("cargo:rerun-if-changed=src/schema/code");
    let mut hash = Fnv(0xCBF2_9CE4_8422_2325);
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        hash.add(file.to_string_lossy().as_bytes());
        hash.add(&fs::read(file).unwrap_or_default());
    }
    // target/PROFILE/build/NAME/out: what inherits from a profile says that it is that one.
    let profile = env::var_os("OUT_DIR").map(PathBuf::from).and_then(|out| {
        out.ancestors().nth(3).and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
    });
    let mut settings: Vec<String> = env::vars()
        .filter(|(name, _)| {
            name.starts_with("CARGO_FEATURE_") || ["TARGET", "PROFILE", "OPT_LEVEL"].contains(&&**name)
        })
        .map(|(name, value)| format!("{name}={value}"))
        .chain(profile)
        .collect();
    settings.sort();
    // Whoever asks which sources these are wants the same answer from every compiler setting.
    println!("cargo:rustc-env=PGBENCH_EXT_SOURCES={:016x}", hash.0);
    settings.iter().for_each(|setting| hash.add(setting.as_bytes()));
    println!("cargo:rustc-env=PGBENCH_EXT_BUILD={:016x}", hash.0);
}

/// All sources below a folder: of the library, and of the install SQL; not of tests and updates.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if ["tests", "tests.rs", "conventions", "fuzz", "upgrade"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "sql") {
            files.push(path);
        }
    }
}

/// 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), over texts that are told apart by a byte that ends each.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xFF]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}
