//! What src/shm uses of pgrx, with memory of this process in the place of shared memory: a segment is exactly as long as it
//! was asked for, as aligned as the server's are, filled with what was there before, and freed at the last detach.

pub use pg_guard::pg_guard;

#[macro_export]
macro_rules! log {
    ($($part:tt)*) => { eprintln!($($part)*) };
}

#[expect(non_camel_case_types, reason = "names of the server's")]
pub mod pg_sys {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ffi::c_void;
    use std::sync::Mutex;

    /// A mapping is at the begin of a page.
    const PAGE: usize = 4096;

    /// One process's hold on a segment.
    pub struct dsm_segment {
        handle: u32,
        callbacks: Vec<(Callback, Datum)>,
    }

    type Callback = unsafe extern "C-unwind" fn(*mut dsm_segment, Datum);

    struct Memory {
        base: *mut u8,
        length: usize,
        attached: usize,
    }

    // SAFETY: only the pointer travels; what it points to are atomics, or is written before others attach.
    unsafe impl Send for Memory {}

    static SEGMENTS: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

    #[derive(Clone, Copy, PartialEq)]
    #[repr(transparent)]
    pub struct Datum(*mut c_void);

    impl<T> From<*const T> for Datum {
        fn from(pointer: *const T) -> Self {
            Self(pointer.cast_mut().cast())
        }
    }

    impl Datum {
        pub fn cast_mut_ptr<T>(self) -> *mut T {
            self.0.cast()
        }
    }

    #[derive(Clone, Copy)]
    pub struct Oid(pub u32);

    impl Oid {
        pub fn to_u32(self) -> u32 {
            self.0
        }
    }

    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length, PAGE).expect("a length")
    }

    fn of<T>(handle: u32, look: impl FnOnce(&mut Memory) -> T) -> Option<T> {
        let mut segments = SEGMENTS.lock().expect("nobody panics with it");
        segments.get_mut(handle as usize).filter(|memory| memory.attached > 0).map(look)
    }

    pub unsafe fn dsm_create(length: usize, _flags: i32) -> *mut dsm_segment {
        // SAFETY: not empty: a segment has a header.
        let base = unsafe { alloc(layout(length)) };
        let mut segments = SEGMENTS.lock().expect("nobody panics with it");
        segments.push(Memory { base, length, attached: 1 });
        Box::into_raw(Box::new(dsm_segment { handle: segments.len() as u32 - 1, callbacks: Vec::new() }))
    }

    pub unsafe fn dsm_attach(handle: u32) -> *mut dsm_segment {
        match of(handle, |memory| memory.attached += 1) {
            Some(()) => Box::into_raw(Box::new(dsm_segment { handle, callbacks: Vec::new() })),
            None => std::ptr::null_mut(),
        }
    }

    /// As in a process that is not attached yet.
    pub unsafe fn dsm_find_mapping(_handle: u32) -> *mut dsm_segment {
        std::ptr::null_mut()
    }

    pub unsafe fn dsm_segment_handle(segment: *mut dsm_segment) -> u32 {
        // SAFETY: by the caller attached: from Box::into_raw, and not detached yet.
        unsafe { (*segment).handle }
    }

    pub unsafe fn dsm_segment_address(segment: *mut dsm_segment) -> *mut c_void {
        // SAFETY: by the caller attached.
        of(unsafe { dsm_segment_handle(segment) }, |memory| memory.base.cast()).expect("attached")
    }

    pub unsafe fn dsm_segment_map_length(segment: *mut dsm_segment) -> usize {
        // SAFETY: by the caller attached.
        of(unsafe { dsm_segment_handle(segment) }, |memory| memory.length).expect("attached")
    }

    pub unsafe fn dsm_pin_mapping(_segment: *mut dsm_segment) {}

    pub unsafe fn dsm_detach(segment: *mut dsm_segment) {
        // SAFETY: by the caller attached; each borrow ends before the callback, which may change the list.
        while let Some((callback, argument)) = unsafe { (*segment).callbacks.pop() } {
            // SAFETY: registered with this argument, for a segment that is still attached.
            unsafe { callback(segment, argument) };
        }
        // SAFETY: from Box::into_raw; nobody uses it after it was detached.
        let handle = unsafe { Box::from_raw(segment) }.handle;
        of(handle, |memory| {
            memory.attached -= 1;
            if memory.attached == 0 {
                // SAFETY: from `alloc` with this layout; nobody is attached any more.
                unsafe { dealloc(memory.base, layout(memory.length)) };
            }
        });
    }

    pub unsafe fn on_dsm_detach(segment: *mut dsm_segment, callback: Option<Callback>, argument: Datum) {
        // SAFETY: by the caller attached.
        unsafe { (*segment).callbacks.push((callback.expect("a function"), argument)) };
    }

    pub unsafe fn cancel_on_dsm_detach(segment: *mut dsm_segment, _: Option<Callback>, argument: Datum) {
        // SAFETY: by the caller attached.
        unsafe { (*segment).callbacks.retain(|(_, other)| *other != argument) };
    }
}
