//! The mapping from devices of the load to targets: parsed, and resolved for a load.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use iosonar_pacing::{Error, Result};
use iosonar_trace::{DeviceId, path_text};
use serde::{Serialize, Serializer};

/// A `--target`: `DEV`, or `SRC=DEV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Name or number of a device of the load; `None` for all other devices.
    pub source: Option<String>,
    /// The block device or regular file.
    pub target: PathBuf,
}

impl From<&OsStr> for Mapping {
    /// The part before `=` is a device only if it is UTF-8 without `/`, so that `./a=b` is a file.
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

/// As typed.
impl Serialize for Mapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Maps each device of the load to the index of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceMap {
    named: BTreeMap<u16, u16>,
    others: Option<u16>,
}

impl DeviceMap {
    /// All devices go to the first target.
    pub fn all_to_first() -> Self {
        Self { named: BTreeMap::new(), others: Some(0) }
    }

    /// The target of a device; `None` if it is not mapped.
    pub fn target_of(&self, device: DeviceId) -> Option<u16> {
        self.named.get(&device.0).copied().or(self.others)
    }

    /// The devices mapped to a target by name, and whether all other devices go there too.
    pub fn sources_of(&self, target: u16) -> (Vec<u16>, bool) {
        let named = self.named.iter().filter(|(_, to)| **to == target).map(|(device, _)| *device).collect();
        (named, self.others == Some(target))
    }

    /// Maps one device, or with `None` all other devices, to a target. False if they are already mapped.
    pub fn insert(&mut self, device: Option<DeviceId>, target: u16) -> bool {
        match device {
            Some(device) => self.named.insert(device.0, target).is_none(),
            None => self.others.replace(target).is_none(),
        }
    }
}

/// Resolves mappings for a load with these device names; `targets` are the targets' indices. Names are incomplete if the
/// load was not read yet because it comes from a pipe (`is_read` is false).
pub fn resolve(mappings: &[Mapping], targets: &[u16], names: &[&str], is_read: bool) -> Result<DeviceMap> {
    let mut map = DeviceMap::default();
    for (mapping, &target) in mappings.iter().zip(targets) {
        let device = mapping.source.as_deref().map(|source| find_device(source, names, is_read)).transpose()?;
        if !map.insert(device, target) {
            return Err(Error::Usage(match &mapping.source {
                Some(source) => format!("--target {mapping}: device {source} of the load already has a target"),
                None => format!(
                    "--target {mapping}: a second target for all devices of the load; map a device to it, as in \
                     --target sda={mapping}"
                ),
            }));
        }
    }
    Ok(map)
}

/// The device with this name, or else with this number.
fn find_device(source: &str, names: &[&str], is_read: bool) -> Result<DeviceId> {
    if !source.is_empty()
        && let Some(number) = names.iter().position(|name| *name == source)
    {
        return Ok(DeviceId(number as u16));
    }
    match source.parse() {
        Ok(number) if usize::from(number) < names.len() || !is_read => Ok(DeviceId(number)),
        _ => Err(Error::Options(unknown_device(source, names, is_read))),
    }
}

/// Minimum similarity of a suggested name.
const MIN_SIMILARITY: f64 = 0.7;
/// Maximum number of listed names.
const MAX_LISTED: usize = 8;

fn unknown_device(source: &str, names: &[&str], is_read: bool) -> String {
    if !is_read {
        return format!(
            "--target {source}=…: device names in a load from a pipe are not known in advance; give the device's number, \
             or read the load from a file"
        );
    }
    let mut rated: Vec<_> = names.iter().map(|name| (strsim::jaro_winkler(source, name), name)).collect();
    rated.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest = match rated.first() {
        Some((similarity, name)) if *similarity > MIN_SIMILARITY => format!(" Did you mean {name}?"),
        _ => String::new(),
    };
    let listed: Vec<_> = names.iter().enumerate().take(MAX_LISTED).map(|(i, name)| device_label(i, name)).collect();
    let more = if names.len() > MAX_LISTED { format!(" and {} more", names.len() - MAX_LISTED) } else { String::new() };
    format!("the load has no device {source:?}.{nearest} The replayed part has {}{more}", listed.join(", "))
}

/// A device for people: its number, and its name if it has one.
pub fn device_label(number: usize, name: &str) -> String {
    if name.is_empty() { format!("device {number}") } else { format!("{name} (device {number})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(text: &str) -> Mapping {
        Mapping::from(OsStr::new(text))
    }

    fn resolved(texts: &[&str], names: &[&str]) -> Result<DeviceMap> {
        let mappings: Vec<_> = texts.iter().map(|text| mapping(text)).collect();
        let targets: Vec<_> = (0..texts.len() as u16).collect();
        resolve(&mappings, &targets, names, true)
    }

    #[test]
    fn mappings_are_parsed_and_displayed() {
        let of = |text| (mapping(text).source, mapping(text).target.display().to_string());
        assert_eq!(of("/dev/sdb"), (None, "/dev/sdb".into()));
        assert_eq!(of("sda=/dev/sdb"), (Some("sda".into()), "/dev/sdb".into()));
        assert_eq!(of("0=a=b"), (Some("0".into()), "a=b".into()));
        assert_eq!(of("./a=b"), (None, "./a=b".into()));
        assert_eq!(mapping("sda=/dev/sdb").to_string(), "sda=/dev/sdb");
    }

    #[test]
    fn devices_are_mapped_by_name_by_number_and_by_default() {
        let map = resolved(&["sdb=x", "0=y", "z"], &["sda", "sdb", "sdc"]).unwrap();
        let targets = [0, 1, 2, 7].map(|device| map.target_of(DeviceId(device)));
        assert_eq!(targets, [Some(1), Some(0), Some(2), Some(2)]);
        assert_eq!(map.sources_of(2), (vec![], true));
        assert_eq!(map.sources_of(0), (vec![1], false));
        let map = resolved(&["sdb=x"], &["sda", "sdb"]).unwrap();
        assert_eq!(map.target_of(DeviceId(0)), None, "mapped to nothing");
        // A name takes precedence over a number.
        assert_eq!(resolved(&["1=x"], &["1", "0"]).unwrap().target_of(DeviceId(0)), Some(0));
    }

    #[test]
    fn unknown_and_repeated_devices_are_refused() {
        let error = |texts: &[&str], names: &[&str]| resolved(texts, names).unwrap_err().to_string();
        let unknown = error(&["nvme0n2=x"], &["sda", "nvme0n1"]);
        assert!(unknown.contains("Did you mean nvme0n1?") && unknown.contains("sda (device 0)"), "{unknown}");
        assert!(error(&["2=x"], &["sda", "sdb"]).contains("no device \"2\""));
        assert!(error(&["=x"], &[""]).contains("no device"), "the nameless one has a number");
        assert!(error(&["sda=x", "0=y"], &["sda"]).contains("already has a target"));
        assert!(error(&["x", "y"], &["sda"]).contains("--target sda=y"));
        let piped = resolve(&[mapping("sda=x")], &[0], &[""], false).unwrap_err().to_string();
        assert!(piped.contains("pipe"), "{piped}");
        assert!(resolve(&[mapping("3=x")], &[0], &[""], false).is_ok(), "numbers need no names");
    }
}
