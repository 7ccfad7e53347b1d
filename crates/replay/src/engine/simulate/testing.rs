//! Requests for the tests of laws.

use iosonar_trace::{Flags, Nanos, Op};

use super::law::{Arrival, Law, Passage};

/// A request of 4 KiB at block `block`.
pub fn arrival(at: i64, op: Op, block: u64) -> Arrival {
    Arrival { at: Nanos(at), key: 0, op, flags: Flags::NONE, offset: block * 4096, length: 4096, in_device: 1 }
}

/// The passage of a request through one law.
pub fn pass(law: &mut impl Law, request: &Arrival) -> Passage {
    let mut passage = Passage::starting(request.at);
    law.apply(request, &mut passage);
    passage
}
