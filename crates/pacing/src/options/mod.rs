//! Options of both replays, of requests and of calls: each has a file, and a line in the list below. From the list come the
//! options of both commands, what they do to times, and the table of the Python half.

mod asap;
pub mod configured;
mod depth;
mod isolate;
mod option;
mod perturb;
mod repeat;
mod run_for;
mod seed;
mod speedup;
mod start_at;
mod start_file;
mod wait;

use std::ffi::OsString;
use std::ops::Deref;
use std::path::PathBuf;

use clap::{Arg, Args, Command, FromArgMatches};
use iosonar_trace::Nanos;
use iosonar_trace::run_info::OpenMap;
use serde::Serialize;

use crate::Error;
use crate::depth::Depth;
use crate::host::isolation::IsolationPart;
use crate::perturb::Perturb;
use crate::start::{Start, UnixTime};
use crate::wait::Wait;

pub use option::{Changes, OptionInfo, PacingOption, Rows};

/// Defines the options, of which each dereferences to its value, and what they do together.
macro_rules! pacing_options {
    ($($name:ident: $option:ty => $value:ty,)*) => {
        /// When and how requests or calls are issued. Serialised, they are keys of `run.options` of the footer.
        #[derive(Clone, Debug, Args, Serialize)]
        pub struct PacingOptions {
            $(
                #[allow(missing_docs, reason = "the help of the option says it")]
                #[command(flatten)]
                #[serde(flatten)]
                pub $name: $option,
            )*
        }

        $(
            impl Deref for $option {
                type Target = $value;

                fn deref(&self) -> &$value {
                    &self.$name
                }
            }
        )*

        impl PacingOptions {
            /// What is known of each option.
            pub fn all() -> Vec<OptionInfo> {
                vec![$(OptionInfo::of::<$option>()),*]
            }

            /// The definition of an option in the words of calls.
            pub fn for_calls(option: Arg) -> Arg {
                match option.get_id().as_str() {
                    $(stringify!($name) => <$option>::for_calls(option),)*
                    _ => option,
                }
            }

            /// Refuses options that a replay of these rows cannot have.
            pub fn check(&self, rows: Rows, has_times: bool) -> Result<(), Error> {
                let each = [$(self.$name.check(rows, has_times)),*];
                each.into_iter().collect::<Result<(), _>>().map_err(|why| Error::Usage(why.into()))
            }

            /// The scheduled time of a row at this time of the load, both since the first row. Never decreases.
            #[inline]
            pub fn scheduled(&self, at: Nanos) -> Nanos {
                $(let at = self.$name.scheduled(at);)*
                at
            }

            /// How much later than scheduled a row is issued on purpose. `random` returns random numbers.
            #[inline]
            pub fn delay(&self, scheduled: Nanos, random: &mut impl FnMut() -> u64) -> Nanos {
                let issued = scheduled;
                $(let issued = issued + self.$name.delay(issued, random);)*
                issued - scheduled
            }

            /// From this time of the run on, nothing new is issued.
            pub fn until(&self) -> Option<Nanos> {
                [$(self.$name.until()),*].into_iter().flatten().min()
            }

            /// How the options distort the load, as subjects of a sentence.
            pub fn distortions(&self) -> impl Iterator<Item = String> {
                [$(self.$name.distortion()),*].into_iter().flatten()
            }

            /// How they perturb the issue times, as on the command line.
            fn perturbations(&self) -> impl Iterator<Item = String> {
                [$(self.$name.perturbation()),*].into_iter().flatten()
            }
        }
    };
}

// In the order of the help. Times are mapped in this order, too.
pacing_options! {
    speedup: speedup::Speedup => f64,
    asap: asap::Asap => bool,
    run_for: run_for::RunFor => Option<Nanos>,
    repeat: repeat::Repeat => u32,
    perturb: perturb::PerturbOption => Option<Perturb>,
    seed: seed::Seed => u64,
    depth: depth::DepthOption => Depth,
    start_at: start_at::StartAt => Option<UnixTime>,
    start_file: start_file::StartFile => Option<PathBuf>,
    wait: wait::WaitOption => Option<Wait>,
    isolate: isolate::Isolate => Vec<IsolationPart>,
}

impl PacingOptions {
    /// Parses words of a command line.
    pub fn parse(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let command = Self::augment_args(Command::new("pacing").no_binary_name(true));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// The options that change this.
    pub fn that_change(changes: Changes) -> impl Iterator<Item = OptionInfo> {
        Self::all().into_iter().filter(move |option| option.changes == changes)
    }

    /// The names of those that change this and do not have their default.
    pub fn changed(&self, changes: Changes) -> Vec<String> {
        let defaults = Self::parse([""; 0]).expect("no option is required");
        let [own, defaults] = [self, &defaults].map(OpenMap::of);
        let is_changed = |option: &OptionInfo| own.get(&option.key) != defaults.get(&option.key);
        Self::that_change(changes).filter(is_changed).map(|option| option.name).collect()
    }

    /// The time of the load, since the first row, from which on rows are scheduled at this time of the run or later.
    pub fn time_in_load(&self, scheduled: Nanos) -> Nanos {
        let (mut low, mut high) = (0, i64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.scheduled(Nanos(middle)) < scheduled {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Nanos(low)
    }

    /// Whether the loop has priority over other programs.
    pub fn has_priority(&self) -> bool {
        self.isolate.contains(&IsolationPart::Priority)
    }

    /// Why the issue times are not faithful, if they are perturbed on purpose.
    pub fn fake(&self) -> Option<String> {
        let how: Vec<_> = self.perturbations().collect();
        let text = || format!("issue times were perturbed on purpose ({}, --seed {})", how.join(", "), *self.seed);
        (!how.is_empty()).then(text)
    }

    /// When the run starts, at the earliest after this grace.
    pub fn start(&self, grace: Nanos) -> Start<'_> {
        Start { at: *self.start_at, file: self.start_file.as_deref(), grace }
    }
}

#[cfg(test)]
mod tests;
