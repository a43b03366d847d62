//! Builds only if neither crate pulls in std: with std in the graph there are two panic handlers (E0152).
//!
//! The one place in this project with `unsafe`: an allocator is an unsafe trait, and a crate that uses `alloc` without
//! std must have one. This one has no memory to give, as nothing here ever runs.
#![no_std]

use core::{
    alloc::{GlobalAlloc, Layout},
    panic::PanicInfo,
    ptr,
};

use xds_matcher as _;

struct NoMemory;

// SAFETY: every allocation fails, which the contract allows; so there is nothing to free.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Uses what is proven, so that it is linked.
pub fn parses(text: &str) -> bool {
    xdstp_uri::Locator::parse(text).is_ok() && xdstp_uri::ResourceName::parse(text).is_ok()
}
