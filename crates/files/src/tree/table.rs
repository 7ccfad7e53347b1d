//! The table `NAME.tree.parquet`: a row for each entry, at the path that it had in the trace.

use std::path::Path;

use iosonar_trace::formats::parquet::{
    BadRows, Buffers, CellType, Cells, Column, Table, TableFile, TableReader, TableWriter,
};
use iosonar_trace::formats::parquet::{column, nullable, required};
use iosonar_trace::input::Input;
use iosonar_trace::output::Output;
use iosonar_trace::{Error, Result};

use crate::Metadata;
use crate::snapshot::{Entry, EntryId, Kind, Tree};

/// A row.
struct Row {
    path: Box<[u8]>,
    /// Its parent and component are not those of a tree.
    entry: Entry,
}

fn kind_number(name: &str) -> Option<u8> {
    Kind::ALL.iter().find(|kind| kind.name() == name).map(|kind| *kind as u8)
}

impl Table for Row {
    type Footer = Metadata;
    const KIND: &'static str = "tree";
    const BAD_ROWS: BadRows = BadRows::Refused;
    const COLUMNS: &'static [Column] = &[
        required("path", CellType::Text),
        required("kind", CellType::Name(kind_number)),
        column("bytes", CellType::Int64),
        column("mode", CellType::Int32),
        column("uid", CellType::Int64),
        column("gid", CellType::Int64),
        nullable("modified_ns", CellType::Int64),
        nullable("target", CellType::Text),
        nullable("link_group", CellType::Int64),
        nullable("device", CellType::Int64),
        column("allocated", CellType::Int64),
        nullable("holes", CellType::Text),
        column("complete", CellType::Bool),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        let entry = &self.entry;
        cells.text(&self.path);
        cells.name(entry.kind.name());
        cells.int64(saturated(entry.bytes));
        cells.int32(entry.mode as i32);
        cells.int64(entry.uid.into());
        cells.int64(entry.gid.into());
        cells.int64_or_null(Some(entry.modified_ns));
        cells.text_or_null(entry.target.as_deref());
        cells.int64_or_null(entry.group.map(saturated));
        cells.int64_or_null(entry.device.map(saturated));
        cells.int64(saturated(entry.allocated));
        cells.text_or_null((!entry.holes.is_empty()).then(|| holes_text(&entry.holes)).as_deref());
        cells.boolean(entry.is_complete);
    }

    fn read_cells(cells: &mut Cells<'_>, _: u64) -> std::result::Result<Self, &'static str> {
        let path = cells.text().ok_or("path is missing")?;
        let kind = cells.number().and_then(|kind| Kind::ALL.get(usize::try_from(kind).ok()?).copied());
        let mut entry = Entry::new(EntryId::ROOT, b"", kind.ok_or("kind is missing, or not a known kind")?);
        entry.is_captured = true;
        entry.bytes = unsigned(cells.number())?;
        entry.mode = unsigned(cells.number())? as u32 & 0o7777;
        entry.uid = u32::try_from(unsigned(cells.number())?).map_err(|_| "uid is too large")?;
        entry.gid = u32::try_from(unsigned(cells.number())?).map_err(|_| "gid is too large")?;
        entry.modified_ns = cells.number().unwrap_or(0);
        entry.target = cells.text().map(|target| target[..].into());
        entry.group = cells.number().map(|group| group as u64);
        entry.device = cells.number().map(|device| device as u64);
        entry.allocated = unsigned(cells.number())?;
        entry.holes = match cells.text() {
            Some(text) => parse_holes(&text, entry.bytes).ok_or("holes are not OFFSET+LENGTH in ascending order")?,
            None => Box::default(),
        };
        entry.is_complete = entry.kind == Kind::Directory && cells.number().is_none_or(|is_complete| is_complete != 0);
        if path.first() != Some(&b'/') || path.contains(&0) || entry.target.as_ref().is_some_and(|to| to.contains(&0)) {
            return Err("path is not absolute, or contains a NUL byte");
        }
        if path.split(|&byte| byte == b'/').any(|component| matches!(component, b"." | b"..")) {
            return Err("path contains `.` or `..`");
        }
        if kind == Some(Kind::Link) && entry.target.as_ref().is_none_or(|target| target.is_empty()) {
            return Err("target is missing");
        }
        Ok(Self { path: path[..].into(), entry })
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.counts.calls += 1;
    }
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: Option<i64>) -> std::result::Result<u64, &'static str> {
    u64::try_from(number.unwrap_or(0)).map_err(|_| "a number is negative")
}

fn holes_text(holes: &[(u64, u64)]) -> Vec<u8> {
    let texts: Vec<String> = holes.iter().map(|(offset, length)| format!("{offset}+{length}")).collect();
    texts.join(" ").into_bytes()
}

fn parse_holes(text: &[u8], bytes: u64) -> Option<Box<[(u64, u64)]>> {
    let mut end = 0;
    let hole = |word: &str| {
        let (offset, length) = word.split_once('+')?;
        let (offset, length): (u64, u64) = (offset.parse().ok()?, length.parse().ok()?);
        let is_ascending = offset >= end;
        end = offset.checked_add(length)?;
        (is_ascending && end <= bytes).then_some((offset, length))
    };
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(hole).collect()
}

impl Tree {
    /// Writes `NAME.tree.parquet`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut writer = TableWriter::<Row>::new(Output::create(path)?)?;
        for (id, entry) in self.entries().filter(|(_, entry)| entry.is_captured) {
            writer.write(&Row { path: self.path(id).into(), entry: entry.clone() })?;
        }
        writer.finish(&Metadata::new("tree", "capture"))
    }

    /// Reads `NAME.tree.parquet`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a snapshot of a tree.
    pub fn load(path: &Path) -> Result<Self> {
        let file = TableFile::open(path, Input::open(path)?.into_file()?)?;
        let mut reader = TableReader::<Row>::new(file, |_| {})?;
        let mut tree = Self::default();
        while let Some(Row { path: of, mut entry }) = reader.advance()? {
            let end = of.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
            let start = of[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            if start == end {
                let root = tree.entry_mut(EntryId::ROOT);
                (root.is_captured, root.is_complete) = (true, entry.is_complete);
                continue;
            }
            entry.parent = tree.directory(&of[..start]);
            if tree.entry(entry.parent).kind != Kind::Directory {
                let of = String::from_utf8_lossy(&of).into_owned();
                return Err(Error::format(path, format!("{of} is in what is not a directory")));
            }
            entry.component = of[start..end].into();
            tree.add(entry);
        }
        Ok(tree)
    }
}
