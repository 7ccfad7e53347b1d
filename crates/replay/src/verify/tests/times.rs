//! The checker with arbitrary overlaps, compared with the definition of the allowed content.

use iosonar_pacing::buffers::Pool;
use iosonar_trace::{IoResult, Nanos, Op, Outcome};
use proptest::prelude::*;

use super::load::write;
use crate::io::{CompletedIo, PreparedIo};
use crate::verify::checker::Checker;
use crate::verify::header::write_header;

const RUN: u64 = 0x1234_5678_9abc_def0;

/// A request with its times in flight; its sequence number is its position in the history, from 1.
#[derive(Clone, Debug)]
struct Event {
    op: Op,
    sector: u64,
    sectors: u64,
    issued: i64,
    /// `None` if it hangs.
    completed: Option<i64>,
    outcome: Outcome,
    /// For each sector of a read, the data it returns.
    returned: Vec<Returned>,
}

#[derive(Clone, Copy, Debug)]
enum Returned {
    /// Data of that request, or the initial content if that request did not write there.
    Of(prop::sample::Index),
    Zeros,
    Foreign,
    Damaged,
}

/// The content found by a read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    SequenceNumber(u64),
    Zeros,
    Foreign,
    Damaged,
}

impl Event {
    fn touches(&self, sector: u64) -> bool {
        self.op.modifies() && self.sector <= sector && sector < self.sector + self.sectors
    }

    fn is_done(&self) -> bool {
        self.outcome == Outcome::Ok
    }

    fn end(&self) -> i64 {
        self.completed.unwrap_or(i64::MAX)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.issued <= other.end() && other.issued <= self.end()
    }

    fn allows(&self, sequence_number: u64, seen: Content) -> bool {
        match self.op {
            Op::Write => seen == Content::SequenceNumber(sequence_number),
            Op::WriteZeroes => seen == Content::Zeros,
            _ => true,
        }
    }
}

/// Whether a read may return this content of a sector: the definition, over the whole history.
fn is_allowed(history: &[Event], read: &Event, sector: u64, seen: Content) -> bool {
    let done_before = |w: &Event| w.is_done() && w.end() < read.issued;
    let visible: Vec<(u64, &Event)> = (1..)
        .zip(history)
        .filter(|(_, w)| w.touches(sector) && w.issued <= read.end())
        .filter(|(_, w)| !history.iter().any(|x| x.touches(sector) && done_before(x) && x.issued > w.end()))
        .collect();
    let before = !history.iter().any(|w| w.touches(sector) && done_before(w));
    if before && matches!(seen, Content::Zeros | Content::Foreign) || visible.iter().any(|(g, w)| w.allows(*g, seen)) {
        return true;
    }
    let torn = visible.iter().any(|(_, w)| w.overlaps(read))
        || visible.iter().any(|(g, a)| visible.iter().any(|(h, b)| g != h && a.overlaps(b)));
    let without_header = before || visible.iter().any(|(_, w)| w.op != Op::Write);
    match seen {
        Content::Damaged => torn,
        Content::Zeros | Content::Foreign => torn && without_header,
        Content::SequenceNumber(_) => false,
    }
}

fn io(sequence_number: u64, event: &Event) -> PreparedIo {
    PreparedIo { op: event.op, ..write(sequence_number, event.sector, event.sectors) }
}

/// The data that a read returns, and its content.
fn returned_data(history: &[Event], read: &Event) -> (Vec<u8>, Vec<Content>) {
    let mut all = Vec::new();
    let mut seen = Vec::new();
    for (sector, returned) in (read.sector..).zip(&read.returned) {
        let mut bytes = vec![0xaa; 512];
        seen.push(match returned {
            Returned::Zeros => {
                bytes.fill(0);
                Content::Zeros
            }
            Returned::Foreign => Content::Foreign,
            Returned::Damaged => {
                write_header(&mut bytes, RUN, &write(1, sector, 1));
                bytes[400] ^= 4;
                Content::Damaged
            }
            Returned::Of(index) => {
                let sequence_number = index.index(history.len()) as u64 + 1;
                let event = &history[sequence_number as usize - 1];
                if event.op == Op::Write && event.touches(sector) {
                    write_header(&mut bytes, RUN, &write(sequence_number, sector, 1));
                    Content::SequenceNumber(sequence_number)
                } else {
                    Content::Foreign
                }
            }
        });
        all.extend(bytes);
    }
    (all, seen)
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let returned = prop_oneof![
        12 => any::<prop::sample::Index>().prop_map(Returned::Of),
        1 => Just(Returned::Zeros), 1 => Just(Returned::Foreign), 1 => Just(Returned::Damaged),
    ];
    let op = prop_oneof![5 => Just(Op::Read), 6 => Just(Op::Write), 1 => Just(Op::Discard), 1 => Just(Op::WriteZeroes)];
    let outcome = prop_oneof![8 => Just(Outcome::Ok), 1 => Just(Outcome::Error), 1 => Just(Outcome::Unfinished)];
    let event = (op, 0u64..20, 0u64..6, 1i64..10, 1i64..60, outcome, prop::collection::vec(returned, 6));
    prop::collection::vec(event, 1..40).prop_map(|events| {
        let mut at = 0;
        events
            .into_iter()
            .map(|(op, sector, sectors, gap, latency, outcome, returned)| {
                at += gap;
                let completed = (outcome != Outcome::Unfinished).then_some(at + latency);
                Event { op, sector, sectors, issued: at, completed, outcome, returned }
            })
            .collect()
    })
}

fn done(sequence_number: u64, event: &Event, history: &[Event], pool: &mut Pool) -> CompletedIo {
    let io = io(sequence_number, event);
    let record = IoResult {
        issued: Some(Nanos(event.issued)),
        completed: event.completed.map(Nanos),
        outcome: event.outcome,
        bytes_done: if event.is_done() { event.sectors * 512 } else { 0 },
        ..io.record()
    };
    let buffer = (event.op == Op::Read && event.is_done()).then(|| {
        let mut buffer = pool.take(event.sectors * 512).unwrap();
        let (bytes, _) = returned_data(history, event);
        let length = event.sectors * 512;
        pool.arena().bytes_mut(&mut buffer, length).copy_from_slice(&bytes[..length as usize]);
        buffer
    });
    let admitted = history.iter().filter(|other| other.issued <= event.end()).count() as u64;
    CompletedIo {
        record,
        sequence_number,
        issuer: 0,
        is_late_by_load: false,
        target: 0,
        admitted,
        reread: None,
        buffer,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]
    #[test]
    fn the_checker_matches_the_definition(history in events()) {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut checker = Checker::new(RUN, 1 << 30, true);
        let mut order: Vec<usize> = (0..history.len()).collect();
        order.sort_by_key(|&i| history[i].end());
        let mut rows = Vec::new();
        for i in order {
            let done = done(i as u64 + 1, &history[i], &history, &mut pool);
            checker.add(&done, pool.arena());
            if let Some(buffer) = done.buffer {
                pool.give(buffer);
            }
            rows.extend(std::iter::from_fn(|| checker.decided()));
        }
        checker.finish();
        rows.extend(std::iter::from_fn(|| checker.decided()));
        prop_assert_eq!(rows.len(), history.len(), "each once");
        prop_assert!(rows.is_sorted_by_key(|row| row.completed.unwrap_or(Nanos::MAX)), "in their order");
        for row in rows.iter().filter(|row| row.op == Op::Read) {
            let read = &history[row.request as usize];
            let (_, seen) = returned_data(&history, read);
            let sectors = if read.is_done() { read.sectors } else { 0 };
            let is_right = (0..sectors).all(|i| is_allowed(&history, read, read.sector + i, seen[i as usize]));
            prop_assert_eq!(row.outcome == Outcome::Corrupt, !is_right, "{:?} saw {:?}: {:?}", read, seen, checker.findings);
        }
    }
}
