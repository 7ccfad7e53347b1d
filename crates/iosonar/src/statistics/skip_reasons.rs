//! Why calls are not replayed, in words.

/// The words for a reason, which is also an outcome of a call.
pub fn skip_reason(name: &str) -> &str {
    match name {
        "bookkeeping" => "on descriptors and processes only",
        "not_a_file" => "on pipes, sockets or terminals",
        "kernel_file" => "on /proc, /sys or /dev",
        "mapped" => "mmap",
        "special_file" => "on device nodes, sockets or FIFOs",
        "unfinished" => "without return in the trace",
        "not_replayable" => "without a replay, such as ioctl",
        "changes_files" => "without a replay, which change files",
        "not_reached" => "not reached",
        name => name,
    }
}
