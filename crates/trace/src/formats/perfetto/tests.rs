use std::collections::HashMap;

use crate::formats::support::check::about;
use crate::model::io_result::{IoResult, Outcome};
use crate::model::request::{Comm, DeviceId, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

/// The fields of a message: numbers, and texts or messages.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let (part, rest) = bytes.split_at(if key & 7 == 2 { value as usize } else { 0 });
        fields.push((key >> 3, value, part));
        bytes = rest;
    }
    fields
}

fn part<'a>(message: &[(u64, u64, &'a [u8])], field: u64) -> Option<&'a [u8]> {
    message.iter().find(|(number, ..)| *number == field).map(|(_, _, part)| *part)
}

fn number(message: &[(u64, u64, &[u8])], field: u64) -> Option<u64> {
    message.iter().find(|(number, ..)| *number == field).map(|(_, value, _)| *value)
}

/// The names of the tracks, and the slices as (track, start, end, argument texts); instants have no end.
struct Seen {
    tracks: HashMap<u64, String>,
    slices: Vec<(u64, u64, Option<u64>, String)>,
}

fn seen(trace: &[u8]) -> Seen {
    let mut seen = Seen { tracks: HashMap::new(), slices: Vec::new() };
    for (_, _, packet) in fields(trace) {
        let packet = fields(packet);
        if let Some(track) = part(&packet, 60).map(fields) {
            let name = String::from_utf8(part(&track, 2).unwrap().to_vec()).unwrap();
            assert!(seen.tracks.insert(number(&track, 1).unwrap(), name).is_none(), "a track is described once");
        }
        if let Some(event) = part(&packet, 11).map(fields) {
            let (at, track) = (number(&packet, 8).unwrap(), number(&event, 11).unwrap());
            assert!(seen.tracks.contains_key(&track), "before its first event");
            if number(&event, 9) == Some(2) {
                let open = seen.slices.iter_mut().rfind(|slice| slice.0 == track).unwrap();
                assert_eq!(open.2.replace(at), None);
                continue;
            }
            let texts = event.iter().filter(|(field, ..)| *field == 4).filter_map(|(_, _, arg)| part(&fields(arg), 6));
            let texts: Vec<_> = texts.map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
            seen.slices.push((track, at, None, texts.join(" ")));
        }
    }
    seen
}

fn written<R>(rows: &[R], create: impl FnOnce(&std::path::Path) -> Box<dyn crate::Writer<R>>) -> (Seen, Vec<String>)
where
    R: crate::Row<Metadata = crate::Metadata>,
{
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.perfetto-trace");
    let mut writer = create(&path);
    rows.iter().for_each(|row| writer.write(row).unwrap());
    let said = writer.finish(&about(&["sda", "<b>sdb"])).unwrap().warnings;
    (seen(&std::fs::read(path).unwrap()), said)
}

fn result(number: u64, issued: i64, completed: i64) -> IoResult {
    let request = Request::new(Nanos(issued), Op::Read, Sector(8), Sectors(8));
    IoResult {
        issued: Some(Nanos(issued)),
        completed: Some(Nanos(completed)),
        outcome: Outcome::Ok,
        ..IoResult::of(&request, number)
    }
}

#[test]
fn slices_of_a_slot_do_not_overlap_and_slots_are_few() {
    // At most three in flight, in the order of their completion.
    let mut rows: Vec<IoResult> =
        (0..300).map(|n| result(n, n as i64 * 10, n as i64 * 10 + [5, 25, 19, 30][n as usize % 4].min(29))).collect();
    rows.sort_by_key(|row| row.completed);
    let (seen, said) = written(&rows, |path| crate::create_run(path, &about(&["sda", "<b>sdb"])).unwrap());
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(seen.slices.len(), 300);
    // The device and its slots.
    assert_eq!(seen.tracks.len(), 1 + 3, "{:?}", seen.tracks);
    let mut by_slot: HashMap<u64, u64> = HashMap::new();
    for (track, start, end, _) in &seen.slices {
        let last = by_slot.entry(*track).or_default();
        assert!(*last <= *start);
        *last = end.unwrap();
    }
}

#[test]
fn requests_without_completion_are_instants_of_their_device() {
    let dropped = IoResult { issued: None, completed: None, outcome: Outcome::Dropped, ..result(0, 7, 0) };
    let lost = IoResult { completed: None, outcome: Outcome::Unfinished, ..result(1, 9, 0) };
    let (seen, _) = written(&[dropped, lost], |path| crate::create_run(path, &about(&["sda"])).unwrap());
    assert_eq!(seen.tracks.into_values().collect::<Vec<_>>(), ["sda"]);
    let shown: Vec<_> = seen.slices.iter().map(|(_, at, end, text)| (*at, *end, text.as_str())).collect();
    assert_eq!(shown, [(7, None, "dropped"), (9, None, "none unfinished")]);
}

#[test]
fn a_recording_is_shown_from_issue_to_completion() {
    let request = Request {
        device: DeviceId(1),
        queued: Some(Nanos(100)),
        latency: Some(Nanos(1_000)),
        comm: Comm::new("<i>x</i>"),
        ..Request::new(Nanos(-50), Op::Write, Sector(8), Sectors(8))
    };
    let plain = Request::new(Nanos(500), Op::Flush, Sector(0), Sectors(0));
    let (seen, said) = written(&[request, plain], |path| crate::create_load(path, &about(&["sda", "<b>sdb"])).unwrap());
    assert!(said.is_empty(), "{said:?}");
    let names: Vec<_> = seen.slices.iter().map(|slice| seen.tracks[&slice.0].as_str()).collect();
    assert_eq!(names, ["slot 1", "sda"]);
    assert!(seen.tracks.values().any(|name| name == "<b>sdb"));
    assert_eq!(seen.slices[0], (seen.slices[0].0, 50, Some(1_050), "<i>x</i>".to_owned()));
    assert_eq!(seen.slices[1].1, 500);
}

#[test]
fn a_trace_that_was_written_is_recognised_but_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.perfetto-trace");
    let mut writer = crate::create_run(&path, &about(&["sda"])).unwrap();
    writer.write(&result(0, 1, 2)).unwrap();
    writer.finish(&about(&["sda"])).unwrap();
    let said = crate::open(&path).err().unwrap().to_string();
    assert!(said.contains("open it in ui.perfetto.dev"), "{said}");
}
