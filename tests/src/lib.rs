//! Tests of chokaq live in `tests/`; this crate holds no code of its own.
