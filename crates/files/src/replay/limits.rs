//! The limit of open descriptors: a replay needs one for each open file description of the trace.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises it as far as allowed. Returns the limit; `None` is none.
pub fn raise_descriptors() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    let tries = [most.or(now.maximum), now.maximum];
    for maximum in tries {
        if setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
            break;
        }
    }
    getrlimit(Resource::Nofile).current
}
