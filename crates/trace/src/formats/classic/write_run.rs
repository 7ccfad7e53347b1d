//! Writes results: the rows and messages of blkreplay, for its tools, and in a seventh column and in comments all else that is
//! known of the run.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::error::{Result, system_text};
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Impossible, Writer};
use crate::model::io_result::{IoResult, Outcome};
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::Op;
use crate::model::row::Row as _;
use crate::model::run_info::{Finding, OptionValue, RunInfo, RunStatistics, TargetKind};
use crate::model::units::{MAX_END_SECTOR, Nanos};
use crate::text::human;

use super::comments::{self, PREFIX, ROW};
use super::details::{self, COLUMN_NAME};
use super::messages::{CUT_SHORT, FAKE_MARK, OUR_END};
use super::preamble::NAME;
use super::row::Row;
use super::run::{has_columns, plain_record};
use super::write::{letter, preamble, put_row};

const COLUMNS: &str = "orig_start ; sector; length ; op ;  replay_delay; replay_duration";

pub fn create_run(mut output: Output, known: &Metadata) -> Result<Box<dyn Writer<IoResult>>> {
    // A reader of sorted lines must not take them for damaged rows.
    let lines = preamble(known);
    let lines = lines
        .split_inclusive('\n')
        .map(|line| [if has_columns(line.as_bytes()) && !line.starts_with('#') { "# " } else { "" }, line]);
    let mut text: String = lines.flatten().collect();
    let has_fake_mark = text.contains(FAKE_MARK);
    if let Some(run) = &known.run {
        text.push_str(&options(run));
    }
    text.push_str(&comments::begin(known));
    output.write_all(text.as_bytes()).map_err(|e| output.error(e))?;
    let findings = Findings::of(known.run.as_deref());
    let written = Metadata::new(Kind::Replay, NAME);
    Ok(Box::new(RunWriter {
        output,
        line: Vec::with_capacity(512),
        has_columns: false,
        findings,
        written,
        comments: 0,
        with_details: 0,
        has_fake_mark,
        last: None,
        left_out: Impossible::default(),
    }))
}

struct RunWriter {
    output: Output,
    line: Vec<u8>,
    /// Whether the line of column names was written.
    has_columns: bool,
    findings: Findings,
    /// Counts the rows.
    written: Metadata,
    /// Rows in comments.
    comments: u64,
    /// Rows with a seventh column.
    with_details: u64,
    /// Whether the mark of a fake result was written.
    has_fake_mark: bool,
    /// The last completion.
    last: Option<Nanos>,
    left_out: Impossible,
}

impl RunWriter {
    /// Writes the line of column names once, before the first row.
    fn put_columns(&mut self, has_details: bool) {
        if !std::mem::replace(&mut self.has_columns, true) {
            self.line.extend_from_slice(COLUMNS.as_bytes());
            if has_details {
                self.line.extend_from_slice(format!(" ; {COLUMN_NAME}").as_bytes());
            }
            self.line.push(b'\n');
        }
    }

    fn write_line(&mut self) -> Result<()> {
        self.output.write_all(&self.line).map_err(|e| self.output.error(e))
    }
}

impl Writer<IoResult> for RunWriter {
    fn write(&mut self, record: &IoResult) -> Result<()> {
        if let Some(problem) = record.problem().or_else(|| details::contradiction(record)) {
            self.left_out.add(problem);
            return Ok(());
        }
        self.line.clear();
        let row = row_of(record);
        let plain = row.map(|row| plain_record(&row, self.written.counts.requests));
        self.put_columns(plain.as_ref() != Some(record));
        self.findings.put_of(&mut self.line, record);
        put_message(&mut self.line, record);
        match row.zip(plain) {
            Some((row, plain)) => {
                put_row(&mut self.line, &row);
                self.with_details += u64::from(*record != plain);
                details::put_column(&mut self.line, record, &plain);
            }
            None => {
                self.comments += 1;
                self.line.extend_from_slice(&[PREFIX, ROW].concat());
                details::put_row(&mut self.line, record);
            }
        }
        self.line.push(b'\n');
        self.written.count_record(record);
        self.last = self.last.max(record.completed);
        self.write_line()
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        let mut loss = self.left_out.conversion_loss(self.output.path(), "request", self.written.counts.requests)?;
        self.line.clear();
        self.put_columns(true);
        // They are known only now if the source of a conversion is a text as well.
        let mut findings = std::mem::take(&mut self.findings);
        if findings.all == 0 {
            findings = Findings::of(metadata.run.as_deref());
        }
        findings.put_rest(&mut self.line);
        let run = metadata.run.as_deref();
        for warning in run.map_or(&[][..], |run| run.warnings.list()) {
            self.line.extend_from_slice(message("WARN", warning).as_bytes());
        }
        // It is known only now if the source of a conversion is a sorted text.
        if let Some(fake) = run.and_then(|run| run.fake.text()).filter(|_| !self.has_fake_mark) {
            self.line.extend_from_slice(format!("{}\n", one_line(fake)).as_bytes());
        }
        self.line.extend_from_slice(statistics(metadata, &self.written, self.comments).as_bytes());
        self.line.extend_from_slice(comments::details(self.with_details).as_bytes());
        self.line.extend_from_slice(comments::end(metadata, &self.written).as_bytes());
        let target = run.and_then(|run| run.target.known()).and_then(|target| target.path.text()).unwrap_or("-");
        let end = if metadata.complete { format!(" ended at {}", ended(run, self.last)) } else { CUT_SHORT.to_owned() };
        self.line.extend_from_slice(format!("{OUR_END}{}{end}\n", one_line(target)).as_bytes());
        self.write_line()?;
        self.output.finish()?;
        if self.comments > 0 {
            loss.warnings.push(format!(
                "blkreplay's text has no rows for {} (flush, discard, not completed, before time zero, …): they are in \
                 comments, which blkreplay's tools skip",
                human::counted(self.comments, "request")
            ));
        }
        Ok(loss)
    }
}

/// When the run ended: its start and the last completion, or what blkreplay said.
fn ended(run: Option<&RunInfo>, last: Option<Nanos>) -> String {
    let started = run.and_then(|run| run.started_unix_ns.value());
    match started.zip(last) {
        Some((started, last)) => human::moment(started.saturating_add(last.0)),
        None => {
            let stated = run.and_then(|run| run.machine.known()?.ended_local.text());
            stated.map_or_else(|| "an unknown time".to_owned(), one_line)
        }
    }
}

/// The six columns; `None` if they cannot hold the row.
fn row_of(record: &IoResult) -> Option<Row> {
    let op = letter(record.op)?;
    let (delay, duration) = (record.delay()?.0, record.latency()?.0);
    let (sector, sectors) = (record.sector.0, record.sectors.0);
    let start = record.scheduled.0;
    let fits = (0..i64::MAX).contains(&start)
        && delay.checked_abs().is_some()
        && duration.checked_abs().is_some()
        && sector.checked_add(sectors).is_some_and(|end| end <= MAX_END_SECTOR);
    let op = if record.pushed_back { op.to_ascii_lowercase() } else { op };
    fits.then_some(Row { start, sector, sectors, op, delay, duration })
}

/// A message on a line of its own, which no tool takes for a row.
fn message(kind: &str, text: &str) -> String {
    format!("{kind}: {}\n", one_line(text))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").replace(';', ",")
}

/// The message that blkreplay writes about a request that failed or was dropped.
fn put_message(line: &mut Vec<u8>, record: &IoResult) {
    let op = if record.op == Op::Read { 'R' } else { 'W' };
    let (sector, sectors, done) = (record.sector.0, record.sectors.0, record.bytes_done);
    let text = match record.outcome {
        Outcome::Error => {
            let why = system_text(&io::Error::from_raw_os_error(record.errno));
            message("ERROR", &format!("bad {op}IO -1 / {} at pos {sector} ({why})", record.errno))
        }
        Outcome::Short => message("ERROR", &format!("bad {op}IO {done} / 0 at pos {sector} (too short)")),
        Outcome::Unfinished => message("ERROR", &format!("request at pos {sector} len = {sectors} never completed")),
        Outcome::Dropped => message("INFO", &format!("dropping block={sector} len={sectors} mode={op}")),
        _ => return,
    };
    line.extend_from_slice(text.as_bytes());
}

/// The options and the size of the target, as blkreplay prints them.
fn options(run: &RunInfo) -> String {
    let mut text = String::new();
    let none = Default::default();
    let options = run.options.known().unwrap_or(&none);
    let mut put = |name: &str, value: String| text.push_str(&message("INFO", &format!("{name}={value}")));
    if let OptionValue::Flag(is_cached) = options.get("no_o_direct") {
        let is = |flag: bool| u8::from(flag).to_string();
        let engine = options.get("engine").text();
        put("use_o_direct", is(!is_cached));
        put("use_o_sync", is(run.is_synchronous()));
        if let Some(ahead) = options.get("ahead_time").integer() {
            put("ahead_limit", format!("{:.9}", Nanos(ahead).as_secs()));
        }
        put("dry_run", is(engine == Some("dry_run")));
        put("fake_io", is(engine == Some("null")));
    }
    for target in run.targets.list().iter().filter(|target| target.kind.value() != Some(TargetKind::None)) {
        if let (Some(path), Some(sectors)) = (target.path.text(), target.sectors.value().filter(|&sectors| sectors > 0))
        {
            put("device", format!("{path} has blocks={sectors} ({} kB).", sectors / 2));
        }
    }
    text
}

/// The findings of verification that are not written yet.
#[derive(Default)]
struct Findings {
    all: usize,
    /// By the request that detected them; the others last.
    of_requests: HashMap<u64, Vec<Finding>>,
    others: Vec<Finding>,
    targets: Vec<PathBuf>,
}

impl Findings {
    fn of(run: Option<&RunInfo>) -> Self {
        let Some(run) = run else { return Self::default() };
        let targets = run.targets.list().iter().map(|target| target.path.text().unwrap_or_default().into()).collect();
        let mut findings = Self { all: run.findings.list().len(), targets, ..Self::default() };
        for finding in run.findings.list() {
            match finding.request {
                Some(request) => findings.of_requests.entry(request).or_default().push(finding.clone()),
                None => findings.others.push(finding.clone()),
            }
        }
        findings
    }

    fn put(&self, line: &mut Vec<u8>, finding: &Finding) {
        let described = finding.describe(&self.targets).to_string();
        line.extend_from_slice(
            message("VERIFY ERROR", &format!("at block {}: {described}", finding.sector)).as_bytes(),
        );
    }

    /// Writes what was found by a request whose data was wrong. A run keeps the first findings only.
    fn put_of(&mut self, line: &mut Vec<u8>, record: &IoResult) {
        if record.outcome != Outcome::Corrupt {
            return;
        }
        match self.of_requests.remove(&record.request) {
            Some(found) => found.iter().for_each(|finding| self.put(line, finding)),
            None => {
                let (sector, sectors) = (record.sector.0, record.sectors.0);
                let text = format!("at block {sector}: wrong data, request {} len = {sectors}", record.request);
                line.extend_from_slice(message("VERIFY ERROR", &text).as_bytes());
            }
        }
    }

    fn put_rest(mut self, line: &mut Vec<u8>) {
        let mut rest: Vec<Finding> = std::mem::take(&mut self.of_requests).into_values().flatten().collect();
        rest.append(&mut self.others);
        rest.sort_by_key(|finding| (finding.at_ns, finding.sector));
        rest.iter().for_each(|finding| self.put(line, finding));
    }
}

/// The closing statistics, as printed by blkreplay.
fn statistics(metadata: &Metadata, written: &Metadata, comments: u64) -> String {
    let run = metadata.run.as_ref();
    let statistics = run.and_then(|run| run.statistics.known());
    let number = |of: fn(&RunStatistics) -> Option<u64>| statistics.and_then(of).unwrap_or(0);
    let target = run.and_then(|run| run.target.known());
    let sectors = target.and_then(|target| target.sectors.value());
    let rows = &written.counts;
    let mut text = String::from("--------------------------------------\n");
    // A recovered run does not know its waits.
    let waits = statistics.map_or(Some(0), RunStatistics::ordered_waits);
    for (name, value) in [
        ("# total     requests          ", Some(number(RunStatistics::requests).max(rows.requests))),
        ("# completed requests          ", Some(rows.requests - comments)),
        ("# write     requests          ", Some(rows.writes)),
        ("# dropped   requests          ", Some(number(RunStatistics::dropped))),
        ("# pushback  requests          ", Some(number(RunStatistics::pushed_back))),
        ("# ordered   requests (waits)  ", waits),
        ("# verify errors during replay ", Some(number(RunStatistics::verify_errors))),
    ] {
        value.into_iter().for_each(|value| text.push_str(&format!("{name}: {value:>6}\n")));
    }
    let highest = metadata.span.max_end_sector;
    if let Some(sectors) = sectors.filter(|&s| s > 0) {
        text.push_str(&format!("size of device:      {sectors:>12} blocks ({} kB)\n", sectors / 2));
        text.push_str(&format!("max block# occurred: {highest:>12} blocks ({} kB)\n", highest / 2));
        text.push_str(&format!("wraparound factor: {:>8.3}\n", highest as f64 / sectors as f64));
    }
    text
}
