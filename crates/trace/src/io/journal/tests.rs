use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use crate::{IoResult, Kind, Metadata, Nanos, Op, Request, Sector, Sectors};

/// A row with a text of its own length.
#[derive(Clone, Debug, PartialEq)]
struct Text(String);

impl Entry for Text {
    type Row = IoResult;
    const LAYOUTS: &'static [u8] = &[7];

    fn length(_: u8) -> Length {
        Length::About(10)
    }

    fn encode(&self, content: &mut Vec<u8>) {
        content.extend(self.0.as_bytes());
    }

    fn decode(_: u8, content: &[u8]) -> Option<Self> {
        String::from_utf8(content.to_vec()).ok().map(Self)
    }

    fn id(&self) -> RowId {
        RowId { of_program: false, pass: 0, number: self.0.len() as u64 }
    }

    fn into_row(self) -> IoResult {
        IoResult::of(&Request::new(Nanos::ZERO, Op::Read, Sector(0), Sectors(self.0.len() as u64)), 0)
    }
}

fn texts(lengths: impl IntoIterator<Item = usize>) -> Vec<Text> {
    lengths.into_iter().map(|length| Text("x".repeat(length))).collect()
}

/// A journal of entries, and the offset of the first one.
fn written(path: &Path, entries: &[Text]) -> u64 {
    let _ = fs::remove_file(path);
    let mut writer = JournalWriter::create(path, &Metadata::new(Kind::Replay, "test"), 0).unwrap();
    let header = fs::metadata(path).unwrap().len();
    assert!(entries.iter().all(|entry| writer.write(entry)));
    assert!(writer.close().failure.is_none());
    header
}

fn read(path: &Path) -> (Vec<Text>, u64) {
    let mut journal = Journal::<Text>::open(path).unwrap();
    let entries = std::iter::from_fn(|| journal.next_entry().unwrap()).collect();
    (entries, journal.damaged())
}

#[test]
fn entries_of_any_length_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    let entries = texts([0, 1, 5000, 3, 100_000, 2]);
    written(&path, &entries);
    assert_eq!(read(&path), (entries, 0));
    assert_eq!(layout_of(&path), Some(7));
}

#[test]
fn entries_after_damage_are_found_whatever_their_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    let entries = texts([20, 30, 40, 50]);
    // Each has 8 bytes beside its content.
    for (from, damage, left) in [
        (0, &[0_u8; 28][..], vec![1, 2, 3]),
        (0, &[0xff; 1], vec![1, 2, 3]),
        (28, &[1, 0, 0, 0], vec![0, 2, 3]),
        (30, &[0; 60], vec![0, 3]),
        (50, &[b'y'; 1], vec![0, 2, 3]),
    ] {
        let header = written(&path, &entries);
        fs::File::options().write(true).open(&path).unwrap().write_all_at(damage, header + from).unwrap();
        let (found, damaged) = read(&path);
        assert_eq!(found, left.iter().map(|&index| entries[index].clone()).collect::<Vec<_>>(), "{from}");
        assert!(damaged > 0);
    }
}

#[test]
fn of_an_entry_that_stands_twice_the_first_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    written(&path, &texts([20, 30, 20, 40, 20]));
    let mut journal = Journal::<Text>::open(&path).unwrap();
    let entries: Vec<Text> = std::iter::from_fn(|| journal.next_entry().unwrap()).collect();
    assert_eq!((entries, journal.damaged(), journal.repeated()), (texts([20, 30, 40]), 0, 2));
}

#[test]
fn entries_before_a_cut_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    let entries = texts([20, 30]);
    for lost in 1..38 {
        let header = written(&path, &entries);
        fs::File::options().write(true).open(&path).unwrap().set_len(header + 66 - lost).unwrap();
        let (found, damaged) = read(&path);
        assert_eq!(found, entries[..1]);
        assert!(damaged > 0, "{lost}");
    }
}

#[test]
fn a_journal_is_written_once_and_read_when_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    let header = Metadata::new(Kind::Replay, "test");
    let mut writer = JournalWriter::<Text>::create(&path, &header, 0).unwrap();
    let again = JournalWriter::<Text>::create(&path, &header, 0).err().unwrap().to_string();
    assert!(again.contains("still running"), "{again}");
    let open = Journal::<Text>::open(&path).err().unwrap().to_string();
    assert!(open.contains("still writing"), "{open}");
    writer.write(&Text("x".into()));
    drop(writer);
    let again = JournalWriter::<Text>::create(&path, &header, 0).err().unwrap().to_string();
    assert!(again.contains("iosonar recover"), "{again}");
}

#[test]
fn a_journal_without_entries_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    drop(JournalWriter::<Text>::create(&path, &Metadata::new(Kind::Replay, "test"), 10).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_closed_journal_is_locked_until_its_result_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.journal");
    let mut writer = JournalWriter::<Text>::create(&path, &Metadata::new(Kind::Replay, "test"), 0).unwrap();
    writer.write(&Text("x".into()));
    let closed = writer.close();
    let other = File::open(&path).unwrap();
    let is_locked = || !becomes_free(|| lock(&other, FlockOperation::NonBlockingLockExclusive));
    assert!(is_locked());
    assert_eq!(read(&path), (texts([1]), 0), "it can be read meanwhile");
    drop(closed);
    assert!(!is_locked());
}
