//! Allocator of the component: dlmalloc, like that of the standard library, but in a version that
//! uses the initial memory before it grows the memory.
//!
//! Each growth makes the host change the protection of the memory twice: at once, and when another
//! instance reuses the memory. `xtask plugins` gives components enough initial memory for most
//! calls.

use dlmalloc::GlobalDlmalloc;

#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;
