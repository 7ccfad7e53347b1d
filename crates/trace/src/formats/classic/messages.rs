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
    fake: Option<String>,
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

impl Messages {
    /// Parses a line that is not a row; false if it is not a message either.
    pub fn parse(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if std::mem::take(&mut self.in_bad_input) && text == "'" {
            return true;
        }
        if text.contains("FAKE RESULT") {
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
        } else if text.starts_with(OUR_END) && text.ends_with(CUT_SHORT) {
            self.ended_early = true;
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
            self.options.insert(name.trim(), number_or_text(value.trim()));
        }
    }

    fn parse_statistic(&mut self, text: &str) -> bool {
        let Some((name, value)) = text.rsplit_once(':') else { return false };
        let name = name.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((_, key)) = STATISTICS.iter().find(|(label, _)| *label == name) else { return false };
        let value = value.split_whitespace().next().unwrap_or_default();
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
        let is_set = |name: &str| self.options.get(name).number().is_some_and(|x| x != 0.0);
        self.fake.clone().or_else(|| {
            ["dry_run", "fake_io", "simulate_io"]
                .into_iter()
                .find(|name| is_set(name))
                .map(|name| format!("FAKE RESULT: replayed with {name}"))
        })
    }

    /// Whether the line was read that ends every result.
    pub fn has_last_line(&self) -> bool {
        self.ended || self.ended_early
    }

    /// At the end of the file, checks whether it is complete.
    pub fn conclude(&self, metadata: &mut Metadata, mut cut_short: bool) {
        let rows = metadata.counts.requests;
        let count = |key: &str| self.statistics.get(key).integer::<u64>();
        if !self.ended {
            metadata.warning("the closing statistics are missing: the result was cut short");
            cut_short = true;
        } else if let Some(completed) = count("completed").filter(|&completed| completed != rows) {
            metadata.warning(format!(
                "{} requests were completed, but the result has {} rows",
                human::count(completed),
                human::count(rows)
            ));
            cut_short = true;
        }
        metadata.complete &= !cut_short;
        if let (Some(requests), Some(completed)) = (count("requests"), count("completed"))
            && requests > completed
        {
            let lost = requests - completed;
            metadata.counts.unmatched = lost;
            metadata.warning(format!(
                "{} of {} requests never completed and have no row",
                human::count(lost),
                human::count(requests)
            ));
        }
        if self.bad_input > 0 {
            metadata.warning(format!("the replayer reported {} bad lines in its input", human::count(self.bad_input)));
        }
        for warning in &self.warnings {
            metadata.warning(format!("message of the replayer: {warning}"));
        }
        self.store(metadata);
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
