//! The value of `--simulate`: service times, a file that describes a device, or the name of a preset.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use iosonar_pacing::Result;
use iosonar_trace::params::{did_you_mean, parse_count};
use iosonar_trace::{small_file, system_text};
use serde::{Serialize, Serializer};

use super::description::Description;
use super::device::Device;
use super::presets::PRESETS;
use crate::engine::service::Distribution;

/// The simulated device of `--simulate`.
#[derive(Clone, Debug, PartialEq)]
pub enum Simulation {
    /// Service times and servers.
    Times {
        /// How long a request occupies a server.
        distribution: Distribution,
        /// Number of requests served concurrently; `None` is unlimited.
        servers: Option<u32>,
    },
    /// A described device.
    Described {
        /// The file or preset, as typed.
        name: String,
        /// What it describes.
        description: Box<Description>,
    },
}

impl Simulation {
    /// The size of a described device in bytes.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Times { .. } => None,
            Self::Described { description, .. } => Some(description.size.0),
        }
    }

    /// The device, for at most `slots` requests in flight.
    pub fn device(&self, slots: usize, seed: u64) -> Result<Device> {
        match self {
            Self::Times { distribution, servers } => Device::with_times(distribution, *servers, seed),
            Self::Described { description, .. } => Device::new(description, slots, seed),
        }
    }
}

impl FromStr for Simulation {
    type Err = String;

    /// Parses `constant=200us`, `exponential=200us`, `lognormal=200us:0.5` or `run=FILE`, optionally followed by
    /// ` servers=8`; a preset; or the path of a description, which ends in `.toml`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let text = text.trim();
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == text) {
            return described(text, preset.text);
        }
        if Path::new(text).extension().is_some_and(|ending| ending == "toml") && !text.starts_with("run=") {
            let file = small_file::read_text(Path::new(text))
                .map_err(|error| format!("cannot read {text}: {}", system_text(&error)))?;
            return described(text, &file);
        }
        if !text.contains('=') {
            let mut names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            names.sort_unstable();
            let hint = Some(did_you_mean(text, names.iter().copied())).filter(|hint| hint.ends_with('?'));
            return Err(format!(
                "no preset is named `{text}`;{} presets: {}. Or give a FILE.toml, or service times such as constant=200us",
                hint.map_or_else(String::new, |hint| format!(" {hint}")),
                names.join(", ")
            ));
        }
        // File names may contain spaces, so only the last word can be the servers.
        let (distribution, servers) = match text.rsplit_once(char::is_whitespace) {
            Some((distribution, word)) => match word.strip_prefix("servers=") {
                Some(count) => {
                    let count = parse_count(count)?;
                    let count = u32::try_from(count).ok().filter(|n| (1..=65_536).contains(n));
                    (distribution.trim(), Some(count.ok_or("servers must be between 1 and 65536")?))
                }
                None => (text, None),
            },
            None => (text, None),
        };
        Ok(Self::Times { distribution: distribution.parse()?, servers })
    }
}

fn described(name: &str, text: &str) -> std::result::Result<Simulation, String> {
    Ok(Simulation::Described { name: name.into(), description: Box::new(Description::parse(name, text)?) })
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times { distribution, servers: None } => distribution.fmt(f),
            Self::Times { distribution, servers: Some(servers) } => write!(f, "{distribution} servers={servers}"),
            Self::Described { name, .. } => f.write_str(name),
        }
    }
}

impl Serialize for Simulation {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Nanos;

    use super::*;

    #[test]
    fn a_description_is_a_small_regular_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("endless.toml");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let why = path.to_str().unwrap().parse::<Simulation>().unwrap_err();
        assert!(why.contains("it is a device; name a regular file"), "{why}");
    }

    #[test]
    fn a_simulation_is_parsed_and_displayed() {
        for text in [
            "constant=200us",
            "exponential=200us",
            "lognormal=1ms:0.5 servers=8",
            "run=a file.replay.parquet servers=1",
            "nvme",
        ] {
            assert_eq!(text.parse::<Simulation>().unwrap().to_string(), text);
        }
        let constant = Simulation::Times { distribution: Distribution::Constant(Nanos(200_000)), servers: None };
        assert_eq!("constant=200us".parse(), Ok(constant));
        for wrong in
            ["", "constant", "constant=-1ms", "lognormal=1ms", "lognormal=1ms:x", "run=", "constant=1ms servers=0"]
        {
            assert!(wrong.parse::<Simulation>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_names_and_faulty_files_are_explained() {
        let error = "hd".parse::<Simulation>().unwrap_err();
        assert!(PRESETS.iter().all(|preset| error.contains(preset.name)), "{error}");
        let error = "/nowhere/x.toml".parse::<Simulation>().unwrap_err();
        assert!(error.starts_with("cannot read /nowhere/x.toml"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        std::fs::write(&path, "servers = 4\n\n[service.constant]\ntime = \"1 fortnight\"\n").unwrap();
        let error = path.to_str().unwrap().parse::<Simulation>().unwrap_err();
        assert!(error.contains("mine.toml:4: service.constant, time:"), "{error}");
    }
}
