//! Follows processes, descriptors and names through a trace.
