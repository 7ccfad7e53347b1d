//! Positions at a fixed distance, as of a program that reads one column of a table.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};
use iosonar_trace::{Sector, Sectors};

use super::{Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "strided",
        about: "Each request starts at a fixed distance from the one before",
        details: "The next pass starts where the first request of the last one ended; after a whole stride, at the start of the space.\n\
                  If the stride is a multiple of the only size, all positions occur equally often.",
        params: &[
            ParamSpec {
                name: "stride",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("1M"),
                help: "distance from start to start, rounded up to the alignment",
            },
            ParamSpec {
                name: "pass",
                takes: ParamType::Word(&["next", "same"]),
                default: ParamDefault::Value("next"),
                help: "whether each pass starts behind the last one's first request, or at the same place",
            },
        ],
        example: "strided stride=64k",
    },
    build: |settings, space, _| {
        let stride = space.slots_of(settings.sectors("stride"));
        let is_same = settings.text("pass") == "same";
        Ok(Box::new(Strided { space, stride, is_same, next: 0, pass: 0 }))
    },
};

struct Strided {
    space: Space,
    /// Slots from start to start.
    stride: u64,
    is_same: bool,
    next: u64,
    /// The first slot of the next pass.
    pass: u64,
}

impl Positions for Strided {
    fn next(&mut self, sectors: Sectors, _: &mut Rng) -> Sector {
        let slots = self.space.slots_for(sectors);
        if self.next >= slots {
            self.next = if self.pass < slots.min(self.stride) { self.pass } else { 0 };
        }
        let slot = self.next;
        // The first request of a pass is within the first stride.
        if slot < self.stride && !self.is_same {
            self.pass = slot + self.space.slots_of(sectors);
        }
        self.next = slot + self.stride;
        self.space.sector(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn passes_begin_one_request_later_until_a_whole_stride() {
        assert_eq!(first("strided stride=12k", 8, 10), [0, 3, 6, 1, 4, 7, 2, 5, 0, 3]);
        assert_eq!(first("strided stride=1k", 3, 4), [0, 1, 2, 0]);
        assert_eq!(first("strided stride=12k pass=same", 8, 5), [0, 3, 6, 0, 3]);
        assert_eq!(first("strided stride=1M", 3, 5), [0, 1, 2, 0, 1]);
    }
}
