//! The mix of operations, with their counts as weights.

use iosonar_trace::Op;

use super::sample::SampledRequest;

/// The text of the mix.
pub(super) fn fit(requests: &[SampledRequest]) -> String {
    let count = |is: &dyn Fn(&SampledRequest) -> bool| requests.iter().filter(|asked| is(asked)).count();
    let counts = [
        ("read", count(&|asked| asked.op == Op::Read)),
        ("write", count(&|asked| asked.op == Op::Write && !asked.is_fua)),
        ("flush", count(&|asked| asked.op == Op::Flush)),
        ("fua", count(&|asked| asked.op == Op::Write && asked.is_fua)),
        ("discard", count(&|asked| asked.op == Op::Discard)),
    ];
    let used = counts.iter().filter(|(_, count)| *count > 0);
    used.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(",")
}
