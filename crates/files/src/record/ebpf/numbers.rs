//! The numbers of system calls on this kind of processor.

use crate::model::kind::CallKind;

/// One more than the highest number: `NUMBERS` of the eBPF program.
pub const NUMBERS: usize = 512;

/// All calls with their numbers.
pub fn numbers() -> impl Iterator<Item = (CallKind, usize)> {
    CallKind::ALL.iter().filter_map(|&kind| Some((kind, kind.number()?)))
}

pub fn kinds() -> [Option<CallKind>; NUMBERS] {
    let mut kinds = [None; NUMBERS];
    for (kind, number) in numbers() {
        kinds[number] = Some(kind);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_one_number() {
        assert_eq!(kinds().iter().flatten().count(), numbers().count());
        #[cfg(target_arch = "x86_64")]
        assert_eq!(numbers().count(), CallKind::ALL.len() - 1, "all but page faults");
        assert_eq!(kinds()[libc::SYS_openat as usize], Some(CallKind::Openat));
    }
}
