//! All options of a replay.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use iosonar_trace::transforms::{self, Pipeline};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::issuing::IssueOptions;
use crate::config::method::{FAKE, Method};
use crate::config::modes::ModeOptions;
use crate::config::overlaps::OverlapOptions;
use crate::config::result::ResultOptions;
use crate::config::target::TargetOptions;
use crate::config::time::TimeOptions;
use crate::config::typed::typed;
use crate::config::verification::VerifyOptions;
use crate::issuer::closed::Think;
use crate::pipeline::payload::DataSpec;
use crate::schedule::iterations::Iterations;
use crate::schedule::time_map::{Schedule, TimeMap};

/// Every option of a replay. Serialised, it is `run.options` of the footer: each by its name.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Options {
    /// What the user typed. First of the fields: the others take their values out of the matches.
    #[command(flatten)]
    #[serde(skip)]
    pub typed: Typed,
    /// The load, in any format that `iosonar convert` reads; `-` is standard input
    #[arg(default_value = "none", hide_default_value = true, required_unless_present = "calibrate")]
    #[serde(serialize_with = "crate::config::path_text::serialize")]
    pub load: PathBuf,
    /// Transform the load first, as `iosonar edit` does: 'select from=0 to=300 | slip every=32768 increase=256'
    #[arg(long, value_name = "PIPELINE", value_parser = transforms::parse)]
    pub edit: Option<Pipeline>,
    /// The result; NAME.replay.parquet, or NAME.replay.gz for blkreplay's text
    #[arg(long, short, value_name = "FILE")]
    #[arg(default_value = "none", hide_default_value = true, required_unless_present = "calibrate")]
    #[serde(serialize_with = "crate::config::path_text::serialize")]
    pub output: PathBuf,
    /// Where requests go.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: TargetOptions,
    /// The part of the load, and its speed.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeOptions,
    /// The ways to run.
    #[command(flatten)]
    #[serde(flatten)]
    pub modes: ModeOptions,
    /// What to do with overlaps.
    #[command(flatten)]
    #[serde(flatten)]
    pub overlaps: OverlapOptions,
    /// What the data of writes is.
    #[command(flatten)]
    pub data: DataSpec,
    /// What the loop keeps to.
    #[command(flatten)]
    #[serde(flatten)]
    pub issuing: IssueOptions,
    /// What does the I/O.
    #[command(flatten)]
    #[serde(flatten)]
    pub method: Method,
    /// What is checked.
    #[command(flatten)]
    #[serde(flatten)]
    pub verification: VerifyOptions,
    /// What is kept.
    #[command(flatten)]
    #[serde(flatten)]
    pub result: ResultOptions,
}

/// The options that were typed, for people.
#[derive(Clone, Debug)]
pub struct Typed(Map<String, Value>);

impl Typed {
    /// By long name; see [`typed`].
    pub fn options(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(typed(&Options::augment_args(Command::new("replay")), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It has no options of its own.
impl Args for Typed {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl Options {
    /// Those of a command line, from the load on.
    pub fn parse(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let command = Self::augment_args(Command::new("replay").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// The same, of words without spaces that are right.
    #[cfg(test)]
    pub fn of(line: &str) -> Self {
        Self::parse(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Whether requests go at the load's own times.
    pub fn keeps_times(&self) -> bool {
        !self.time.asap && self.modes.closed.is_none()
    }

    /// Whether there are times to be exact about.
    pub fn has_deadlines(&self) -> bool {
        !self.time.asap && self.modes.closed != Some(Think::Never)
    }

    /// Whether the load comes through a pipe: it can be read only once, and may let wait.
    pub fn is_piped(&self) -> bool {
        self.load == Path::new("-") || fs::metadata(&self.load).is_ok_and(|m| m.file_type().is_fifo())
    }

    /// The run's schedule, of iterations that were opened for it.
    pub fn schedule<'a>(&self, iterations: Iterations<'a>) -> Schedule<'a> {
        let times = TimeMap::new(self.time.speedup, !self.has_deadlines());
        self.modes.applied(Schedule::new(iterations, times))
    }

    /// Why the result says nothing about a device, if so: it goes into the footer, and on every picture.
    pub fn fake(&self) -> Option<String> {
        match (self.method.fake(), self.modes.fake()) {
            (Some(method), Some(mode)) => Some(format!("{method}; {mode}")),
            (None, Some(mode)) => Some(format!("{FAKE}{mode}")),
            (method, None) => method,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_definition_is_one_that_clap_accepts() {
        Options::augment_args(Command::new("replay")).debug_assert();
    }

    /// The names of all options, in the units of programs.
    #[test]
    fn the_footer_has_each_option_by_its_name() {
        let kept = json!(Options::of("a.load.gz -t x -o a.replay.gz"));
        let command = Options::augment_args(Command::new("replay"));
        let names = command.get_arguments().filter_map(|option| option.get_long()).map(|name| name.replace('-', "_"));
        // In another form, or of the command alone.
        let others = [
            "target",
            "duration",
            "calibrate",
            "repeat",
            "compressible",
            "dedupe",
            "fill_random",
            "dry_run",
            "fake_io",
        ];
        for name in names.filter(|name| !others.contains(&name.as_str())) {
            assert!(kept.get(&name).is_some(), "{name}: {kept}");
        }
        assert_eq!((&kept["start"], &kept["end"]), (&json!(0), &Value::Null));
        assert_eq!((&kept["ahead"], &kept["ahead_time"]), (&json!(4096), &json!(1_000_000_000)));
        assert_eq!((&kept["depth"], &kept["depth_for"]), (&json!(512), &json!("all")));
        assert_eq!((&kept["buffers"], &kept["targets"]), (&json!(256 << 20), &json!(["x"])));
    }
}
