//! Reads the text that strace writes.
