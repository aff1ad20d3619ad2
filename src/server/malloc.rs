//! How this process asks the system for memory.

/// Experiment.
pub fn fix_thresholds() {
    let Ok(text) = std::fs::read_to_string("/tmp/bench_malloc") else { return };
    let values: Vec<i32> = text.trim().split(',').filter_map(|v| v.parse().ok()).collect();
    if let [mmap, trim, pad] = values[..] {
        // SAFETY: sets parameters of this process's allocator.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, mmap);
            libc::mallopt(libc::M_TRIM_THRESHOLD, trim);
            libc::mallopt(libc::M_TOP_PAD, pad);
        }
    }
}
