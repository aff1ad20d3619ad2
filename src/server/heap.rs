//! What malloc can hand out without asking the kernel.

/// The largest blocks that holes are filled with, and the smallest, in bytes. What is larger than the largest is filled by several.
const LARGEST: usize = 64 << 10;
const SMALLEST: usize = 1 << 10;

/// So many blocks of a size at most.
const MOST: usize = 64;

/// Leaves malloc as it is in a backend that has just begun: with no holes between what is in use, and with nothing kept at the end
/// of the heap. A worker frees much while it prepares. Statements that find room in such holes do not take memory from the kernel
/// and return it, which in a backend can be a third of what they cost. Does nothing where malloc is not glibc's.
pub fn fill_holes() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: neither touches a block that is in use.
        let end = unsafe {
            libc::malloc_trim(0);
            libc::sbrk(0) as usize
        };
        // What is left at the end is less than two pages.
        let top = end.saturating_sub(2 * 4096);
        let mut size = LARGEST;
        while size >= SMALLEST {
            for _ in 0..MOST {
                // SAFETY: a block that is not returned is nobody's until the process ends, which is what fills the hole.
                let block = unsafe { libc::malloc(size) };
                if block.is_null() || block as usize + size > top {
                    // SAFETY: it came from malloc just now, or is null.
                    unsafe { libc::free(block) };
                    break;
                }
            }
            size /= 2;
        }
        // SAFETY: as above.
        unsafe { libc::malloc_trim(0) };
    }
}
