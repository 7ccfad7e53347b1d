//! Results of calls as entries of a journal.

use iosonar_trace::Nanos;
use iosonar_trace::journal::{Entry, Length, RowId};

use crate::{CallKind, CallOutcome, CallResult, DelayReason, Name};

/// The result of a call, as the journal has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its row.
    pub row: CallResult,
    /// When the call began in the trace, since virtual zero.
    pub begin_in_trace: Nanos,
}

/// The bit of a row with a path, after those of its optional numbers.
const HAS_PATH: u16 = 1 << 9;
/// Bytes of an entry with all numbers, without its path.
const MAX_BYTES: usize = 2 + 3 + 4 * 4 + 3 * 8 + 9 * 8;

impl Entry for Recorded {
    type Row = CallResult;
    /// A change of [`CallKind`]'s numbers needs another layout, too.
    const LAYOUTS: &'static [u8] = &[4];

    fn length(_: u8) -> Length {
        Length::About(160)
    }

    fn encode(&self, content: &mut Vec<u8>) {
        let Self { row, begin_in_trace } = self;
        let time = |time: Option<Nanos>| time.map(|time| time.0);
        let optional = [
            row.position.map(|bytes| bytes as i64),
            row.length.map(|bytes| bytes as i64),
            time(row.issued),
            time(row.completed),
            time(row.predecessors_end),
            time(row.gap),
            row.result,
            row.expected_result,
            time(row.expected_duration),
        ];
        let path = row.path.as_ref();
        let known = optional.iter().zip(0..).map(|(number, bit)| u16::from(number.is_some()) << bit);
        let known = known.sum::<u16>() | if path.is_some() { HAS_PATH } else { 0 };
        // All but the path, put together on the stack: a vector checks its room with each number.
        let mut out = [0; MAX_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&known.to_le_bytes());
        put(&[row.kind as u8, row.delay_reason as u8, row.outcome as u8]);
        for number in [row.instance, row.thread, row.errno as u32, row.expected_errno as u32] {
            put(&number.to_le_bytes());
        }
        let numbers = [row.call as i64, begin_in_trace.0, row.scheduled.0];
        numbers.into_iter().chain(optional.into_iter().flatten()).for_each(|number| put(&number.to_le_bytes()));
        content.extend_from_slice(&out[..at]);
        content.extend_from_slice(path.map_or(&[], |path| path.as_bytes()));
    }

    fn decode(_: u8, content: &[u8]) -> Option<Self> {
        let mut rest = content;
        let known = u16::from_le_bytes(take(&mut rest)?);
        let [kind, delay_reason, outcome] = take(&mut rest)?;
        let mut small = || take(&mut rest).map(u32::from_le_bytes);
        let (instance, thread, errno, expected_errno) = (small()?, small()?, small()? as i32, small()? as i32);
        let mut number = || take(&mut rest).map(i64::from_le_bytes);
        let (call, begin_in_trace, scheduled) = (number()? as u64, Nanos(number()?), Nanos(number()?));
        let mut optional = [None; 9];
        for (place, _) in optional.iter_mut().zip(0..).filter(|(_, bit)| known >> bit & 1 == 1) {
            *place = Some(number()?);
        }
        let [position, length, issued, completed, predecessors_end, gap, result, expected_result, expected_duration] =
            optional;
        let row = CallResult {
            call,
            instance,
            thread,
            kind: *CallKind::ALL.get(usize::from(kind))?,
            path: (known & HAS_PATH != 0).then(|| Name::from(rest)),
            position: position.map(|bytes| bytes as u64),
            length: length.map(|bytes| bytes as u64),
            scheduled,
            issued: issued.map(Nanos),
            completed: completed.map(Nanos),
            predecessors_end: predecessors_end.map(Nanos),
            gap: gap.map(Nanos),
            delay_reason: DelayReason::from_number(delay_reason)?,
            result,
            errno,
            expected_result,
            expected_errno,
            expected_duration: expected_duration.map(Nanos),
            outcome: CallOutcome::from_number(outcome)?,
        };
        Some(Self { row, begin_in_trace })
    }

    fn id(&self) -> RowId {
        RowId { of_program: false, pass: self.row.instance, number: self.row.call }
    }

    fn into_row(self) -> CallResult {
        self.row
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Recorded> {
        let numbers = any::<([Option<i64>; 9], [i64; 3])>();
        let small = any::<([u32; 4], [proptest::sample::Index; 3], Option<Vec<u8>>)>();
        (numbers, small).prop_map(|((optional, [call, begin, scheduled]), (small, [kind, reason, outcome], path))| {
            let [position, length, issued, completed, predecessors_end, gap, result, expected, duration] = optional;
            let row = CallResult {
                call: call as u64,
                instance: small[0],
                thread: small[1],
                kind: *kind.get(CallKind::ALL),
                path: path.as_deref().map(Name::from),
                position: position.map(|bytes| bytes as u64),
                length: length.map(|bytes| bytes as u64),
                scheduled: Nanos(scheduled),
                issued: issued.map(Nanos),
                completed: completed.map(Nanos),
                predecessors_end: predecessors_end.map(Nanos),
                gap: gap.map(Nanos),
                delay_reason: *reason.get(DelayReason::ALL),
                result,
                errno: small[2] as i32,
                expected_result: expected,
                expected_errno: small[3] as i32,
                expected_duration: duration.map(Nanos),
                outcome: *outcome.get(CallOutcome::ALL),
            };
            Recorded { row, begin_in_trace: Nanos(begin) }
        })
    }

    proptest! {
        #[test]
        fn an_entry_keeps_everything(entry in entry(), bytes in any::<Vec<u8>>()) {
            let mut content = Vec::new();
            entry.encode(&mut content);
            prop_assert_eq!(Recorded::decode(4, &content), Some(entry));
            // Any other bytes do no harm.
            let _ = Recorded::decode(4, &bytes);
        }
    }
}
