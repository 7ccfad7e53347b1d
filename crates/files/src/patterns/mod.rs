//! Traces of known access patterns, generated.
