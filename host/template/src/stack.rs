//! Room on the stack for nested includes and nested nodes.

/// Bytes that must be left before one more level: a level of include takes about 6 KiB in an
/// optimised build and 40 KiB in a debug build.
const RED_ZONE: usize = 256 << 10;

/// Bytes of each further piece of stack.
const PIECE: usize = 4 << 20;

/// Calls a function with enough stack, on a new piece of it when the current one is nearly full.
///
/// Renders run on threads of any size, and 1,000 nested includes need more than most have.
pub(crate) fn grown<T>(inner: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, PIECE, inner)
}
