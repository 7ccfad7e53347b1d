//! All options of a replay.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use iosonar_pacing::options::PacingOptions;
use iosonar_pacing::options::configured::configured;
use iosonar_pacing::payload::DataSpec;
use iosonar_pacing::start::Start;
use iosonar_trace::run_info::OpenMap;
use iosonar_trace::transforms::{self, Pipeline};
use serde::Serialize;

use crate::config::issuing::IssueOptions;
use crate::config::modes::ModeOptions;
use crate::config::overlaps::OverlapOptions;
use crate::config::program::ProgramOptions;
use crate::config::result::ResultOptions;
use crate::config::target::TargetOptions;
use crate::config::time::TimeOptions;
use crate::config::typed_options::typed_options;
use crate::config::verification::VerifyOptions;
use crate::engine::method::{FAKE, Method};
use crate::issuer::closed::Think;
use crate::schedule::iterations::Iterations;
use crate::schedule::time_map::{Schedule, TimeMap};

/// All options of a replay. Serialised, they are `run.options` of the footer.
#[derive(Clone, Debug, Args, Serialize)]
// Called `threads` up to version 0.1.
#[command(mut_arg("depth", |depth| depth.alias("threads")))]
pub struct Options {
    /// The options as typed. Must be the first field, as the others remove their values from the matches.
    #[command(flatten)]
    #[serde(skip)]
    pub typed: TypedOptions,
    /// The load, in any format that `iosonar convert` reads; `-` is standard input
    #[arg(required_unless_present_any = ["calibrate", "program"])]
    #[serde(serialize_with = "iosonar_pacing::path_text::optional")]
    pub load: Option<PathBuf>,
    /// Transform the load first, as `iosonar edit` does: 'select from=0 to=300 | slip every=32768 increase=128k'
    #[arg(long, value_name = "PIPELINE", value_parser = transforms::parse)]
    pub edit: Option<Pipeline>,
    /// The result: NAME.replay.parquet, or NAME.replay.gz for blkreplay's text
    #[arg(long, short, value_name = "FILE")]
    #[arg(required_unless_present = "calibrate")]
    #[serde(serialize_with = "iosonar_pacing::path_text::optional")]
    pub output: Option<PathBuf>,
    /// Targets, and how requests map to them.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: TargetOptions,
    /// The window.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeOptions,
    /// When and how requests are issued.
    #[command(flatten)]
    #[serde(flatten)]
    pub pacing: PacingOptions,
    /// Loops, closed loops and perturbation.
    #[command(flatten)]
    #[serde(flatten)]
    pub modes: ModeOptions,
    /// A program beside the load, or instead of it.
    #[command(flatten)]
    #[serde(flatten)]
    pub program: ProgramOptions,
    /// Overlaps and conflicts.
    #[command(flatten)]
    #[serde(flatten)]
    pub overlaps: OverlapOptions,
    /// The data of writes.
    #[command(flatten)]
    pub data: DataSpec,
    /// Depth, preparation ahead of time, and waiting.
    #[command(flatten)]
    #[serde(flatten)]
    pub issuing: IssueOptions,
    /// The I/O engine.
    #[command(flatten)]
    #[serde(flatten)]
    pub method: Method,
    /// Verification.
    #[command(flatten)]
    #[serde(flatten)]
    pub verification: VerifyOptions,
    /// The result.
    #[command(flatten)]
    #[serde(flatten)]
    pub result: ResultOptions,
}

/// The options that the user typed, for people.
#[derive(Clone, Debug)]
pub struct TypedOptions {
    values: OpenMap,
    /// Also those with the value of their default.
    given: Vec<String>,
    /// Those of them that are defaults of the user.
    configured: Vec<String>,
}

impl TypedOptions {
    /// Values by long name, as [`typed_options`] returns them.
    pub fn options(&self) -> &OpenMap {
        &self.values
    }

    /// The long names of the options whose value is the user's default, from the configuration file.
    pub fn configured(&self) -> &[String] {
        &self.configured
    }

    /// Whether an option is on the command line or has a default of the user, by its long name.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }
}

impl FromArgMatches for TypedOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let definition = Options::augment_args(Command::new("replay"));
        let configured = configured(&definition, matches);
        let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let ids = matches.ids().map(clap::Id::as_str).filter(is_given);
        let given = ids.map(|id| id.replace('_', "-")).chain(configured.iter().cloned()).collect();
        Ok(Self { values: typed_options(&definition, matches), given, configured })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Defines no options.
impl Args for TypedOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl Options {
    /// Parses a command line without the program's and the subcommand's name.
    pub fn parse(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let command = Self::augment_args(Command::new("replay").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// Parses a valid command line whose words have no spaces.
    #[cfg(test)]
    pub fn of(line: &str) -> Self {
        Self::parse(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Whether requests are issued at the times of the load.
    pub fn keeps_times(&self) -> bool {
        !*self.pacing.asap && self.modes.closed.is_none()
    }

    /// Whether requests have deadlines: times of the load, or the end of a think time.
    pub fn has_deadlines(&self) -> bool {
        !*self.pacing.asap && self.modes.closed != Some(Think::Never)
    }

    /// Whether requests wait for completions, those of clients or those of a program.
    pub fn is_closed(&self) -> bool {
        self.modes.closed.is_some() || self.program.program.is_some()
    }

    /// When the run starts.
    pub fn start(&self) -> Start<'_> {
        self.pacing.start(self.issuing.grace)
    }

    /// The result.
    ///
    /// # Panics
    /// With `--calibrate`, which has none.
    pub fn output(&self) -> &Path {
        self.output.as_deref().expect("clap demands it without --calibrate")
    }

    /// Whether there is a load; a program may run without one.
    pub fn has_load(&self) -> bool {
        self.load.is_some()
    }

    /// The same options with a program, named like a load, instead of the load.
    pub fn with_program_instead_of_load(mut self) -> Self {
        self.program.program = self.load.take().map(|program| program.to_string_lossy().into_owned());
        self
    }

    /// Whether the load is a pipe, which can be read only once and may block.
    pub fn is_piped(&self) -> bool {
        let is_pipe = |load: &PathBuf| fs::metadata(load).is_ok_and(|m| m.file_type().is_fifo());
        self.load.as_ref().is_some_and(|load| load == Path::new("-") || is_pipe(load))
    }

    /// The requests of all iterations, with the times at which the options issue them.
    pub fn schedule<'a>(&self, iterations: Iterations<'a>) -> Schedule<'a> {
        Schedule::new(iterations, TimeMap::new(self.pacing.clone(), self.has_deadlines()))
    }

    /// Why the result says nothing about a device, as a sentence for the footer and every picture; `None` for a real one.
    pub fn fake(&self) -> Option<String> {
        match (self.method.fake(), self.pacing.fake()) {
            (Some(method), Some(mode)) => Some(format!("{method}; {mode}")),
            (None, Some(mode)) => Some(format!("{FAKE}{mode}")),
            (method, None) => method,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn clap_accepts_the_definitions() {
        Options::augment_args(Command::new("replay")).debug_assert();
    }

    #[test]
    fn the_footer_has_each_option_by_its_name() {
        let kept = json!(Options::of("a.load.gz -t x -o a.replay.gz"));
        let command = Options::augment_args(Command::new("replay"));
        let names = command.get_arguments().filter_map(|option| option.get_long()).map(|name| name.replace('-', "_"));
        // Under another name in the footer, or not in it.
        let others = [
            "target",
            "duration",
            "calibrate",
            "repeat",
            "compressible",
            "dedupe",
            "data_block",
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
