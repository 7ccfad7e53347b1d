//! Which target each device of the load goes to: what the user said, and what that means for the load at hand.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use iosonar_trace::{DeviceId, path_text};
use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// One `--target`: `DEV`, or `SRC=DEV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Name or number of a device of the load; `None` stands for all devices that nothing else names.
    pub source: Option<String>,
    /// The block device or regular file.
    pub target: PathBuf,
}

impl From<&OsStr> for Mapping {
    /// A `/` before the `=` makes it part of a path, so that `./a=b` is a file. What stands before it is no name of a device
    /// either if it is no UTF-8.
    fn from(word: &OsStr) -> Self {
        let bytes = word.as_bytes();
        let mut parts = bytes.splitn(2, |&byte| byte == b'=');
        let source = parts.next().and_then(|source| std::str::from_utf8(source).ok());
        match (source.filter(|source| !source.contains('/')), parts.next()) {
            (Some(source), Some(target)) => {
                Self { source: Some(source.to_owned()), target: OsStr::from_bytes(target).into() }
            }
            _ => Self { source: None, target: word.into() },
        }
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{source}={}", path_text(&self.target)),
            None => f.write_str(&path_text(&self.target)),
        }
    }
}

/// As it is typed.
impl Serialize for Mapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which of the run's targets each device of the load goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    named: BTreeMap<u16, u16>,
    others: Option<u16>,
}

impl Map {
    /// All devices go to the first target.
    pub fn all_to_first() -> Self {
        Self { named: BTreeMap::new(), others: Some(0) }
    }

    /// The target of a device; `None` if it was mapped to nothing.
    pub fn target_of(&self, device: DeviceId) -> Option<u16> {
        self.named.get(&device.0).copied().or(self.others)
    }

    /// The devices that were mapped to a target by name, and whether all that nothing names go there as well.
    pub fn sources_of(&self, target: u16) -> (Vec<u16>, bool) {
        let named = self.named.iter().filter(|(_, to)| **to == target).map(|(device, _)| *device).collect();
        (named, self.others == Some(target))
    }

    /// Sends one device, or (`None`) all that nothing else names, to a target. False if they go somewhere already.
    pub fn insert(&mut self, device: Option<DeviceId>, target: u16) -> bool {
        match device {
            Some(device) => self.named.insert(device.0, target).is_none(),
            None => self.others.replace(target).is_none(),
        }
    }
}

/// What the mappings mean for a load with these devices; `targets` are the mappings' indices among the run's targets.
/// Names of a load that nobody has read yet (`is_read` is false: it comes through a pipe) may still be unknown.
pub fn resolve(mappings: &[Mapping], targets: &[u16], names: &[&str], is_read: bool) -> Result<Map> {
    let mut map = Map::default();
    for (mapping, &target) in mappings.iter().zip(targets) {
        let device = mapping.source.as_deref().map(|source| find(source, names, is_read)).transpose()?;
        if !map.insert(device, target) {
            return Err(Error::Usage(match &mapping.source {
                Some(source) => format!("--target {mapping}: device {source} of the load has a target already"),
                None => format!(
                    "--target {mapping}: a second target for all devices of the load; say which device goes there, as in \
                     --target sda={mapping}"
                ),
            }));
        }
    }
    Ok(map)
}

/// A device of the load by its name, or else by its number.
fn find(source: &str, names: &[&str], is_read: bool) -> Result<DeviceId> {
    if !source.is_empty()
        && let Some(number) = names.iter().position(|name| *name == source)
    {
        return Ok(DeviceId(number as u16));
    }
    match source.parse() {
        Ok(number) if usize::from(number) < names.len() || !is_read => Ok(DeviceId(number)),
        _ => Err(Error::Options(unknown(source, names, is_read))),
    }
}

/// Names that are less like what was typed are no help.
const ALIKE: f64 = 0.7;
/// More names than that are not listed.
const MOST_LISTED: usize = 8;

fn unknown(source: &str, names: &[&str], is_read: bool) -> String {
    if !is_read {
        return format!(
            "--target {source}=…: a load that comes through a pipe has no names before it is read; give the number of \
             the device, or name a file as the load"
        );
    }
    let mut rated: Vec<_> = names.iter().map(|name| (strsim::jaro_winkler(source, name), name)).collect();
    rated.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest = match rated.first() {
        Some((alike, name)) if *alike > ALIKE => format!(" Did you mean {name}?"),
        _ => String::new(),
    };
    let listed: Vec<_> = names.iter().enumerate().take(MOST_LISTED).map(|(i, name)| labelled(i, name)).collect();
    let more =
        if names.len() > MOST_LISTED { format!(" and {} more", names.len() - MOST_LISTED) } else { String::new() };
    format!("the load has no device {source:?}.{nearest} What is replayed of it has {}{more}", listed.join(", "))
}

/// A device of a load for people: its number, and its name if it has one.
pub fn labelled(number: usize, name: &str) -> String {
    if name.is_empty() { format!("device {number}") } else { format!("{name} (device {number})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(text: &str) -> Mapping {
        Mapping::from(OsStr::new(text))
    }

    fn resolved(texts: &[&str], names: &[&str]) -> Result<Map> {
        let mappings: Vec<_> = texts.iter().map(|text| mapping(text)).collect();
        let targets: Vec<_> = (0..texts.len() as u16).collect();
        resolve(&mappings, &targets, names, true)
    }

    #[test]
    fn what_is_typed() {
        let of = |text| (mapping(text).source, mapping(text).target.display().to_string());
        assert_eq!(of("/dev/sdb"), (None, "/dev/sdb".into()));
        assert_eq!(of("sda=/dev/sdb"), (Some("sda".into()), "/dev/sdb".into()));
        assert_eq!(of("0=a=b"), (Some("0".into()), "a=b".into()));
        assert_eq!(of("./a=b"), (None, "./a=b".into()));
        assert_eq!(mapping("sda=/dev/sdb").to_string(), "sda=/dev/sdb");
    }

    #[test]
    fn by_name_by_number_and_the_others() {
        let map = resolved(&["sdb=x", "0=y", "z"], &["sda", "sdb", "sdc"]).unwrap();
        let targets = [0, 1, 2, 7].map(|device| map.target_of(DeviceId(device)));
        assert_eq!(targets, [Some(1), Some(0), Some(2), Some(2)]);
        assert_eq!(map.sources_of(2), (vec![], true));
        assert_eq!(map.sources_of(0), (vec![1], false));
        let map = resolved(&["sdb=x"], &["sda", "sdb"]).unwrap();
        assert_eq!(map.target_of(DeviceId(0)), None, "mapped to nothing");
        // A name goes before a number.
        assert_eq!(resolved(&["1=x"], &["1", "0"]).unwrap().target_of(DeviceId(0)), Some(0));
    }

    #[test]
    fn refuses_what_is_unknown_or_said_twice() {
        let said = |texts: &[&str], names: &[&str]| resolved(texts, names).unwrap_err().to_string();
        let unknown = said(&["nvme0n2=x"], &["sda", "nvme0n1"]);
        assert!(unknown.contains("Did you mean nvme0n1?") && unknown.contains("sda (device 0)"), "{unknown}");
        assert!(said(&["2=x"], &["sda", "sdb"]).contains("no device \"2\""));
        assert!(said(&["=x"], &[""]).contains("no device"), "the nameless one has a number");
        assert!(said(&["sda=x", "0=y"], &["sda"]).contains("has a target already"));
        assert!(said(&["x", "y"], &["sda"]).contains("--target sda=y"));
        let piped = resolve(&[mapping("sda=x")], &[0], &[""], false).unwrap_err().to_string();
        assert!(piped.contains("pipe"), "{piped}");
        assert!(resolve(&[mapping("3=x")], &[0], &[""], false).is_ok(), "numbers need no names");
    }
}
