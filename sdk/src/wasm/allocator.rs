//! The component's allocator: the standard library's, in a version that first uses the memory which the component begins with.
//!
//! A memory that grows costs the host two changes of its protection, one now and one when the memory is used again. `cargo xtask plugins`
//! lets components begin with as much as most calls need.

use dlmalloc::GlobalDlmalloc;

#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;
