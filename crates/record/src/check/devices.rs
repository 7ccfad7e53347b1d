//! Matches the run's targets with recorded devices, by name or device number, as far as the files tell them.

use iosonar_trace::run_info::{RunTarget, TargetKind};
use iosonar_trace::{DeviceId, Metadata};

use super::flushes::Flushes;

/// Requests are compared within a group: a target and the recorded device that matches it. Targets and devices
/// unmatched a match form one group, [`OTHERS`].
pub type Group = u16;

/// The group of targets and devices unmatched a match.
pub const OTHERS: Group = 0;

/// A target of the run, from its footer.
struct Target {
    /// Its name in notes: `loop1`, or its path if the footer does not name the disk.
    label: String,
    /// The name of the whole disk, if the footer has it.
    disk: Option<String>,
    /// Index of the recorded device.
    recorded: Option<usize>,
    /// Whether it is, or seems to be, a partition of the recorded disk; its sectors then count from another start.
    is_partition: bool,
    /// Devices of the load that the replay mapped to it.
    sources: Vec<u64>,
    /// Whether all other devices were mapped to it.
    others: bool,
    /// The flushes that a recording of it shows.
    flushes: Flushes,
    /// Whether the footer has its device number; older versions did not write it.
    has_number: bool,
}

/// The run's targets and the recorded devices.
pub struct Devices {
    targets: Vec<Target>,
    recorded: Vec<String>,
}

impl Devices {
    /// From both footers.
    pub fn of(run: &Metadata, recording: &Metadata) -> Self {
        let recorded: Vec<String> = recording.devices.iter().map(|device| device.name.clone()).collect();
        let described = run.run.as_ref().map_or(&[][..], |run| run.targets.list());
        let targets = described.iter().map(|target| Target::of(target, &recorded)).collect();
        Self { targets, recorded }
    }

    /// The group of a row of the run, by its device in the load.
    pub fn of_issued(&self, device: DeviceId) -> Group {
        self.target_of(device).and_then(|target| target.recorded).map_or(OTHERS, group)
    }

    /// The flushes of such a row that a recording shows.
    pub fn flushes_of(&self, device: DeviceId) -> Flushes {
        self.target_of(device).map_or(Flushes::Each, |target| target.flushes)
    }

    fn target_of(&self, device: DeviceId) -> Option<&Target> {
        let by_name = self.targets.iter().find(|target| target.sources.contains(&u64::from(device.0)));
        let target = by_name.or_else(|| self.targets.iter().find(|target| target.others));
        // A single target takes all devices, even if the footer does not say so.
        target.or(if self.targets.len() == 1 { self.targets.first() } else { None })
    }

    /// The group of a row of the recording.
    pub fn of_recorded(&self, device: DeviceId) -> Group {
        let index = device.0 as usize;
        if self.targets.iter().any(|target| target.recorded == Some(index)) { group(index) } else { OTHERS }
    }

    /// The index of a group's device in [`Devices::compared`]; `None` for [`OTHERS`].
    pub fn compared_index(&self, group: Group) -> Option<u16> {
        let index = self.groups().position(|other| other == group)?;
        u16::try_from(index).ok()
    }

    /// The groups of targets with a match.
    fn groups(&self) -> impl Iterator<Item = Group> {
        let is_target = |index| self.targets.iter().any(|target| target.recorded == Some(index));
        (0..self.recorded.len()).filter(move |&index| is_target(index)).map(group)
    }

    /// The recorded devices that match a target, each once.
    pub fn compared(&self) -> Vec<String> {
        self.groups().filter_map(|group| self.recorded.get(usize::from(group).checked_sub(1)?).cloned()).collect()
    }

    /// Notes for the user about targets and devices that do not match, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let unmatched: Vec<&str> = self
            .targets
            .iter()
            .filter(|target| target.recorded.is_none())
            .map(|target| target.label.as_str())
            .collect();
        let named: Vec<&str> = self.recorded.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        if !unmatched.is_empty() && named.is_empty() {
            notes.push(format!(
                "the target of the replay was {}, but the recording does not name its device: if it is another one, the result is \
                 meaningless",
                abbreviated(&unmatched)
            ));
        } else if !unmatched.is_empty() {
            notes.push(format!(
                "the target of the replay was {}, the recording is of {}: unless one is stacked on the other, the result is \
                 meaningless",
                abbreviated(&unmatched),
                abbreviated(&named)
            ));
            notes.extend(self.remap_hint());
        }
        for target in self.targets.iter().filter(|target| target.is_partition) {
            let disk = target.recorded.map_or("", |index| &self.recorded[index]);
            notes.push(format!(
                "the target of the replay was {}, the recording is of {disk}: if one is a partition of the other, their sectors \
                 count from different starts",
                target.label
            ));
        }
        let compared = self.compared();
        let others: Vec<&str> =
            named.iter().copied().filter(|name| !compared.iter().any(|compared| compared == name)).collect();
        if unmatched.is_empty() && !self.targets.is_empty() && !others.is_empty() {
            notes.push(format!(
                "{} was not a target of the replay: its recorded requests count as additional",
                abbreviated(&others)
            ));
        }
        if unmatched.len() > 1 && self.recorded.len() - compared.len() > 1 {
            notes.push(format!(
                "requests of {} are compared together: names and numbers do not match",
                abbreviated(&unmatched)
            ));
        }
        notes
    }

    /// How to give a device that another program recorded by number the name that the run has, if the run has no device
    /// number.
    fn remap_hint(&self) -> Option<String> {
        let target = self.targets.iter().find(|target| target.recorded.is_none() && !target.has_number)?;
        let disk = target.disk.as_deref()?;
        let compared = self.compared();
        let mut unmatched = self.recorded.iter().filter(|name| is_number(name) && !compared.contains(name));
        let number = unmatched.next()?;
        let condition = if unmatched.next().is_some() { format!(", if {number} is {disk}") } else { String::new() };
        Some(format!(
            "the run does not have the device number of {disk}; `iosonar edit RECORDED x.load.parquet 'remap \
             map={number}:{disk}'` names the recorded device{condition} (`lsblk` shows device numbers)"
        ))
    }
}

/// Whether a name is a device number, `8,16`, as in traces of the kernel.
fn is_number(name: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once(',').is_some_and(|(major, minor)| is_digits(major) && is_digits(minor))
}

/// Recordings have few devices, but traces of other programs may have more than a [`Group`] can number.
fn group(index: usize) -> Group {
    Group::try_from(index + 1).unwrap_or(OTHERS)
}

/// The first names of a list, and how many more there are.
fn abbreviated(names: &[&str]) -> String {
    const MOST: usize = 8;
    let more = names.len().saturating_sub(MOST);
    let label = names[..names.len() - more].join(" ");
    if more > 0 { format!("{label} and {more} more") } else { label }
}

impl Target {
    fn of(target: &RunTarget, recorded: &[String]) -> Self {
        let path = target.path.text().unwrap_or_default();
        let own_name = path.strip_prefix("/dev/").unwrap_or(path);
        let disk = target.disk.text();
        let find = |name: &str| recorded.iter().position(|recorded| !name.is_empty() && recorded == name);
        let (number, disk_number) = (target.number.text(), target.disk_number.text());
        // Traces of other programs name devices by number.
        let own = find(own_name).or_else(|| number.and_then(find));
        let found = own.or_else(|| disk.and_then(find)).or_else(|| disk_number.and_then(find));
        let is_file = target.kind.value() == Some(TargetKind::File);
        // `/dev/sda1` on `sda`; a link such as `/dev/disk/by-id/…-part1` has another name.
        let differs_from_disk = match (number, disk_number) {
            (Some(own), Some(disk)) => own != disk,
            _ => disk.is_some_and(|disk| looks_like_partition(own_name, disk)),
        };
        let is_partition = !is_file && own.is_none() && found.is_some() && differs_from_disk;
        let label = match (is_file, disk) {
            (true, Some(disk)) => format!("{path} (a file on {disk})"),
            (true, None) => path.to_owned(),
            (false, Some(disk)) if !is_partition && own.is_none() => disk.to_owned(),
            (false, _) => own_name.to_owned(),
        };
        Self {
            label,
            disk: disk.map(str::to_owned),
            recorded: found,
            is_partition,
            sources: target.sources.list().to_vec(),
            others: target.others.value() == Some(true),
            flushes: Flushes::on(target),
            has_number: number.is_some(),
        }
    }
}

/// Whether a name is the disk's name followed by a number, or a link to a partition.
fn looks_like_partition(name: &str, disk: &str) -> bool {
    let number = name.strip_prefix(disk).map(|rest| rest.strip_prefix('p').unwrap_or(rest));
    number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
        || name.contains("-part")
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Device, Kind};
    use serde_json::{Value, json};

    use super::*;

    fn devices(targets: Value, recorded: &[&str]) -> Devices {
        let run = serde_json::from_value(json!({"targets": targets})).unwrap();
        let run = Metadata { run, ..Metadata::new(Kind::Replay, "test") };
        let mut recording = Metadata::new(Kind::Load, "record");
        recording.devices = recorded.iter().map(|&name| Device { name: name.into(), sectors: None }).collect();
        Devices::of(&run, &recording)
    }

    fn block(path: &str, disk: &str) -> Value {
        json!({"path": path, "kind": "block", "disk": disk, "sources": [], "others": true})
    }

    #[test]
    fn a_note_warns_that_another_device_was_recorded() {
        let found = devices(json!([block("/dev/loop1", "loop1")]), &["loop2"]);
        assert_eq!((found.of_issued(DeviceId(0)), found.of_recorded(DeviceId(0))), (0, 0));
        assert!(
            found.notes()[0].starts_with("the target of the replay was loop1, the recording is of loop2"),
            "{:?}",
            found.notes()
        );
        assert!(found.compared().is_empty());
    }

    #[test]
    fn a_note_warns_that_the_recording_has_no_device_names() {
        let found = devices(json!([block("/dev/loop1", "loop1")]), &[""]);
        assert!(found.notes()[0].contains("does not name its device"), "{:?}", found.notes());
        assert_eq!(found.notes().len(), 1);
    }

    #[test]
    fn the_same_device_is_compared_without_a_note() {
        for path in ["/dev/sdb", "/dev/disk/by-id/ata-x"] {
            let found = devices(json!([block(path, "sdb")]), &["sdb"]);
            assert_eq!((found.of_issued(DeviceId(7)), found.of_recorded(DeviceId(0))), (1, 1));
            assert_eq!((found.notes(), found.compared()), (vec![], vec!["sdb".to_owned()]));
        }
    }

    fn numbered(path: &str, disk: &str, number: &str, disk_number: &str) -> Value {
        json!({"path": path, "kind": "block", "disk": disk, "number": number, "disk_number": disk_number, "others": true})
    }

    #[test]
    fn a_device_recorded_by_number_matches() {
        let whole = numbered("/dev/loop2", "loop2", "7,2", "7,2");
        let found = devices(json!([whole]), &["254,0", "7,2", "8,16"]);
        assert_eq!([0, 1, 2].map(|device| found.of_recorded(DeviceId(device))), [0, 2, 0]);
        assert_eq!((found.of_issued(DeviceId(0)), found.compared()), (2, vec!["7,2".to_owned()]));
        assert_eq!(found.notes().len(), 1, "about the other devices: {:?}", found.notes());
        // The name takes precedence: another machine may have given the number to another device.
        assert_eq!(devices(json!([whole]), &["7,2", "loop2"]).of_issued(DeviceId(0)), 2);
    }

    #[test]
    fn a_partition_matches_the_number_of_its_disk_with_a_note() {
        let part = numbered("/dev/disk/by-label/data", "sda", "8,3", "8,0");
        let found = devices(json!([part]), &["8,0"]);
        assert_eq!(found.of_issued(DeviceId(0)), 1);
        assert!(found.notes()[0].contains("a partition of the other"), "{:?}", found.notes());
        assert_eq!(devices(json!([part]), &["8,3"]).notes(), Vec::<String>::new());
    }

    #[test]
    fn without_numbers_a_hint_shows_how_to_rename_the_device() {
        let hint = "'remap map=7,2:loop2'";
        let notes = devices(json!([block("/dev/loop2", "loop2")]), &["7,2"]).notes();
        assert!(notes[1].contains(hint) && !notes[1].contains(", if 7,2"), "{notes:?}");
        let notes = devices(json!([block("/dev/loop2", "loop2")]), &["7,2", "8,0"]).notes();
        assert!(notes[1].contains(hint) && notes[1].contains(", if 7,2 is loop2"), "{notes:?}");
        // No hint for a device with another name or another number.
        assert_eq!(devices(json!([block("/dev/loop2", "loop2")]), &["sda"]).notes().len(), 1);
        assert_eq!(devices(json!([numbered("/dev/loop2", "loop2", "7,2", "7,2")]), &["8,0"]).notes().len(), 1);
    }

    #[test]
    fn each_target_has_its_own_group() {
        let targets = json!([
            {"path": "/dev/loop1", "kind": "block", "disk": "loop1", "sources": [0], "others": false},
            {"path": "/dev/loop2", "kind": "block", "disk": "loop2", "sources": [], "others": true},
        ]);
        let found = devices(targets, &["loop2", "loop3", "loop1"]);
        assert_eq!([0, 1, 5].map(|device| found.of_issued(DeviceId(device))), [3, 1, 1]);
        assert_eq!([0, 1, 2].map(|device| found.of_recorded(DeviceId(device))), [1, 0, 3]);
        assert_eq!(found.notes().len(), 1);
        assert!(found.notes()[0].contains("loop3 was not a target"), "{:?}", found.notes());
    }

    #[test]
    fn a_hint_says_that_the_target_is_a_partition_of_the_disk() {
        for path in ["/dev/sda3", "/dev/disk/by-id/ata-x-part3"] {
            let found = devices(json!([block(path, "sda")]), &["sda"]);
            assert!(found.notes()[0].contains("a partition of the other"), "{:?}", found.notes());
        }
        assert_eq!(devices(json!([block("/dev/sda3", "sda")]), &["sda3"]).notes(), Vec::<String>::new());
    }

    #[test]
    fn a_run_without_targets_in_its_footer_is_compared_as_one_group() {
        let found = Devices::of(&Metadata::new(Kind::Replay, "test"), &Metadata::new(Kind::Load, "test"));
        assert_eq!((found.of_issued(DeviceId(0)), found.of_recorded(DeviceId(0))), (0, 0));
        assert_eq!(found.notes(), Vec::<String>::new());
    }
}
