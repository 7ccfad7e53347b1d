//! Messages of blkreplay in a result: options, warnings, closing statistics.

use crate::model::metadata::Metadata;
use crate::model::run_info::{Field, Machine, OpenMap, OptionValue, RunInfo, RunStatistics, RunTarget};
use crate::rows::excerpt_up_to;
use crate::text::human;

/// The messages of the replayer: options, warnings, closing statistics.
#[derive(Default)]
pub struct Messages {
    options: OpenMap,
    target: RunTarget,
    machine: Machine,
    statistics: OpenMap,
    warnings: Vec<String>,
    /// The mark of a fake result.
    fake: Option<String>,
    /// An option by which the result is fake.
    fake_option: Option<&'static str>,
    /// Whether the last line of one of our results was read.
    is_ours: bool,
    bad_input: u64,
    /// Whether the previous line was the first of a message about a bad line.
    in_bad_input: bool,
    ended: bool,
    /// Whether the last line says that the run was cut short.
    ended_early: bool,
}

/// The lines of the closing statistics, without `#` and padding, and the keys for them.
const STATISTICS: &[(&str, &str)] = &[
    ("total input lines", "input_lines"),
    ("total requests", "requests"),
    ("completed requests", "completed"),
    ("write requests", "writes"),
    ("dropped requests", "dropped"),
    ("pushback requests", "pushed_back"),
    ("ordered requests (waits)", "ordered_waits"),
    ("verify errors during replay", "verify_errors"),
    ("conflict_mode", "conflict_mode"),
    ("strong_mode", "strong_mode"),
    ("verify_mode", "verify_mode"),
    ("max_submitted", "max_submitted"),
    ("max_pushback", "max_pushed_back"),
    ("size of device", "device_sectors"),
    ("max block# occurred", "max_end_sector"),
    ("wraparound factor", "wrap_factor"),
];

const MAX_WARNINGS: usize = 50;

/// The beginning of the last line of our results, and its end if the run was cut short.
pub const OUR_END: &str = "iosonar on ";
pub const CUT_SHORT: &str = " was cut short";

/// What the line contains that marks a result as fake.
pub const FAKE_MARK: &str = "FAKE RESULT";
/// The beginning of the first and last line of results of blkreplay.
const ITS_END: &str = "blkreplay on ";

/// Whether a line is the first or last one of a result, or of its closing statistics.
pub fn is_of_result(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    let text = text.trim();
    let is_end =
        |text: &str| [" started at ", " ended at "].iter().any(|verb| text.contains(verb)) || text.ends_with(CUT_SHORT);
    (text.starts_with(OUR_END) || text.starts_with(ITS_END)) && is_end(text)
        || text.starts_with('#') && statistic(text).is_some()
}

/// The key and the value of a line of the closing statistics.
fn statistic(text: &str) -> Option<(&'static str, &str)> {
    let (name, value) = text.rsplit_once(':')?;
    let name = name.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, key) = STATISTICS.iter().find(|(label, _)| *label == name)?;
    Some((key, value.split_whitespace().next().unwrap_or_default()))
}

impl Messages {
    /// Parses a line that is not a row; false if it is not a message either.
    pub fn parse(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if std::mem::take(&mut self.in_bad_input) && text == "'" {
            return true;
        }
        if text.contains(FAKE_MARK) {
            self.fake = Some(text.to_owned());
            return true;
        }
        if let Some(info) = text.strip_prefix("INFO:") {
            self.parse_info(info.trim());
        } else if text.starts_with("ERROR: bad input") {
            // The quoted line has a newline, so the closing quote is on a line of its own.
            (self.bad_input, self.in_bad_input) = (self.bad_input + 1, true);
        } else if ["WARN", "ERROR", "VERIFY"].iter().any(|word| text.starts_with(word)) {
            if self.warnings.len() < MAX_WARNINGS {
                self.warnings.push(excerpt_up_to(line, 300));
            }
        } else if let Some((target, when)) = target_and_time(text, " started at ") {
            self.target.path = target.to_owned().into();
            self.machine.started_local = when.to_owned().into();
        } else if let Some((_, when)) = target_and_time(text, " ended at ") {
            self.machine.ended_local = when.to_owned().into();
            self.ended = true;
            self.is_ours |= text.starts_with(OUR_END);
        } else if text.starts_with(OUR_END) && text.ends_with(CUT_SHORT) {
            (self.ended_early, self.is_ours) = (true, true);
        } else {
            return self.parse_statistic(text);
        }
        true
    }

    fn parse_info(&mut self, info: &str) {
        let Some((name, value)) = info.split_once('=') else { return };
        if name == "device" {
            let sectors = value.split_once("has blocks=").and_then(|(_, n)| n.split_whitespace().next()?.parse().ok());
            if let Some(sectors) = sectors {
                self.target.sectors = Field::Known(sectors);
            }
        } else if self.options.len() < MAX_WARNINGS {
            let (name, value) = (name.trim(), number_or_text(value.trim()));
            let makes_fake = ["dry_run", "fake_io", "simulate_io"].into_iter().find(|option| *option == name);
            if OptionValue::number(&value).is_some_and(|number| number != 0.0) {
                self.fake_option = self.fake_option.or(makes_fake);
            }
            self.options.insert(name, value);
        }
    }

    fn parse_statistic(&mut self, text: &str) -> bool {
        let Some((key, value)) = statistic(text) else { return false };
        self.statistics.insert(key, number_or_text(value));
        true
    }

    /// Stores the messages so far in the metadata.
    pub fn store(&self, metadata: &mut Metadata) {
        metadata.run = Some(Box::new(RunInfo {
            load: None.into(),
            options: self.options.clone().into(),
            target: self.target.clone().into(),
            machine: self.machine.clone().into(),
            fake: self.fake_mark().into(),
            warnings: self.warnings.clone().into(),
            statistics: RunStatistics::Part(self.statistics.clone()).into(),
            ..RunInfo::default()
        }));
    }

    fn fake_mark(&self) -> Option<String> {
        self.fake.clone().or_else(|| self.fake_option.map(|name| format!("FAKE RESULT: replayed with {name}")))
    }

    /// The line that marks the result as fake.
    pub fn fake(&self) -> Option<&str> {
        self.fake.as_deref()
    }

    /// Whether the line was read that ends every result.
    pub fn has_last_line(&self) -> bool {
        self.ended || self.ended_early
    }

    /// Whether the last line is that of one of our results.
    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// Whether anything was read of what precedes the rows.
    pub fn has_beginning(&self) -> bool {
        !self.options.is_empty() || self.machine.started_local.known().is_some() || self.fake.is_some()
    }

    /// At the end of the file, checks by the closing statistics whether it has all rows. So many of them were in comments,
    /// which the number of completed requests leaves out.
    pub fn conclude(&self, metadata: &mut Metadata, in_comments: u64) {
        let rows = metadata.counts.requests.saturating_sub(in_comments);
        let count = |key: &str| self.statistics.get(key).integer::<u64>();
        let completed = count("completed");
        let mut cut_short = self.ended_early;
        if !self.has_last_line() {
            let unknown =
                if self.has_beginning() { "" } else { "; its options, and whether it is fake, are not known" };
            metadata.warning(format!("the closing statistics are missing: the result was cut short{unknown}"));
            cut_short = true;
        } else if let Some(completed) = completed.filter(|&completed| completed != rows) {
            metadata.warning(format!(
                "{} requests were completed, but the result has {} rows",
                human::count(completed),
                human::count(rows)
            ));
            cut_short = true;
        } else if completed.is_none() {
            metadata.warning("the result does not say how many requests were completed: rows may be missing");
        }
        metadata.complete &= !cut_short;
        let in_rows = completed.map(|completed| completed.saturating_add(in_comments));
        if let Some((requests, in_rows)) = count("requests").zip(in_rows)
            && requests > in_rows
        {
            let lost = requests - in_rows;
            metadata.counts.unmatched = lost;
            metadata.warning(format!(
                "{} of {} requests have no row: they never completed{}",
                human::count(lost),
                human::count(requests),
                if self.is_ours { ", or their comments are missing" } else { "" }
            ));
        }
        if self.bad_input > 0 {
            metadata.warning(format!("the replayer reported {} bad lines in its input", human::count(self.bad_input)));
        }
        for warning in &self.warnings {
            metadata.warning(format!("message of the replayer: {warning}"));
        }
    }
}

/// Parses `blkreplay on TARGET started at WHEN`; `verb` is ` started at ` or ` ended at `.
fn target_and_time<'a>(text: &'a str, verb: &str) -> Option<(&'a str, &'a str)> {
    let (program, when) = text.split_once(verb)?;
    let (_, target) = program.split_once(" on ")?;
    Some((target, when))
}

fn number_or_text(value: &str) -> OptionValue {
    if let Ok(whole) = value.parse::<u64>() {
        return whole.into();
    }
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => value.into(),
    }
}
