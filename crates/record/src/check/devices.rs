//! Which recorded device a run's target is: by its name or its numbers, as far as both files tell.

use iosonar_trace::run_info::{RunTarget, TargetKind};
use iosonar_trace::{DeviceId, Metadata};

use super::flushes::Flushes;

/// Requests are compared within a group: a target and the recorded device of its name. What corresponds to nothing by name is
/// group 0, taken together.
pub type Group = u16;

/// What is left over by name.
pub const OTHERS: Group = 0;

/// A target of the run, as its footer tells.
struct Target {
    /// `loop1`, or its path where the disk is not told.
    shown: String,
    /// The whole disk's name, where it is told.
    disk: Option<String>,
    /// Index of the recorded device.
    recorded: Option<usize>,
    /// It is a partition, or so it seems, of the disk that was recorded, where sectors count from another beginning.
    is_part: bool,
    /// Devices of the load that went there by name.
    sources: Vec<u64>,
    /// Whether all others went there.
    others: bool,
    /// What of its flushes a recording shows.
    flushes: Flushes,
    /// Whether the run tells its numbers: those before did not.
    is_numbered: bool,
}

/// The run's targets and the recorded devices.
pub struct Devices {
    targets: Vec<Target>,
    recorded: Vec<String>,
}

impl Devices {
    /// By what both footers say.
    pub fn of(run: &Metadata, recording: &Metadata) -> Self {
        let recorded: Vec<String> = recording.devices.iter().map(|device| device.name.clone()).collect();
        let told = run.run.as_ref().map_or(&[][..], |run| run.targets.list());
        let targets = told.iter().map(|target| Target::of(target, &recorded)).collect();
        Self { targets, recorded }
    }

    /// Of a row of the run, by its device in the load.
    pub fn of_issued(&self, device: DeviceId) -> Group {
        self.target_of(device).and_then(|target| target.recorded).map_or(OTHERS, group)
    }

    /// What a recording shows of the flushes of such a row.
    pub fn flushes_of(&self, device: DeviceId) -> Flushes {
        self.target_of(device).map_or(Flushes::Each, |target| target.flushes)
    }

    fn target_of(&self, device: DeviceId) -> Option<&Target> {
        let by_name = self.targets.iter().find(|target| target.sources.contains(&u64::from(device.0)));
        let target = by_name.or_else(|| self.targets.iter().find(|target| target.others));
        // A single target takes all, whatever the footer says or leaves out.
        target.or(if self.targets.len() == 1 { self.targets.first() } else { None })
    }

    /// Of a row of the recording.
    pub fn of_recorded(&self, device: DeviceId) -> Group {
        let index = device.0 as usize;
        if self.targets.iter().any(|target| target.recorded == Some(index)) { group(index) } else { OTHERS }
    }

    /// The place of a group's device in [`Devices::compared`]; `None` for what corresponds to nothing.
    pub fn place(&self, of: Group) -> Option<u16> {
        let place = self.groups().position(|group| group == of)?;
        u16::try_from(place).ok()
    }

    /// Those that targets correspond to.
    fn groups(&self) -> impl Iterator<Item = Group> {
        let is_target = |index| self.targets.iter().any(|target| target.recorded == Some(index));
        (0..self.recorded.len()).filter(move |&index| is_target(index)).map(group)
    }

    /// The recorded devices that targets correspond to, each once.
    pub fn compared(&self) -> Vec<String> {
        self.groups().filter_map(|group| self.recorded.get(usize::from(group).checked_sub(1)?).cloned()).collect()
    }

    /// What the names do not agree on, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let without: Vec<&str> = self
            .targets
            .iter()
            .filter(|target| target.recorded.is_none())
            .map(|target| target.shown.as_str())
            .collect();
        let named: Vec<&str> = self.recorded.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        if !without.is_empty() && named.is_empty() {
            notes.push(format!(
                "the target of the replay was {}, but the recording does not name its device: if it is another one, the result is \
                 meaningless",
                some(&without)
            ));
        } else if !without.is_empty() {
            notes.push(format!(
                "the target of the replay was {}, the recording is of {}: unless one is stacked on the other, the result is \
                 meaningless",
                some(&without),
                some(&named)
            ));
            notes.extend(self.way_to_a_name());
        }
        for target in self.targets.iter().filter(|target| target.is_part) {
            let disk = target.recorded.map_or("", |index| &self.recorded[index]);
            notes.push(format!(
                "the target of the replay was {}, the recording is of {disk}: if one is a partition of the other, their sectors \
                 count from different starts",
                target.shown
            ));
        }
        let compared = self.compared();
        let others: Vec<&str> =
            named.iter().copied().filter(|name| !compared.iter().any(|compared| compared == name)).collect();
        if without.is_empty() && !self.targets.is_empty() && !others.is_empty() {
            notes.push(format!(
                "{} was no target of the replay: its recorded requests count as additional",
                some(&others)
            ));
        }
        if without.len() > 1 && self.recorded.len() - compared.len() > 1 {
            notes.push(format!("requests of {} are compared together: names and numbers do not match", some(&without)));
        }
        notes
    }

    /// How a device that another program recorded by its numbers gets the name that a run knows, where that does not know
    /// the numbers.
    fn way_to_a_name(&self) -> Option<String> {
        let target = self.targets.iter().find(|target| target.recorded.is_none() && !target.is_numbered)?;
        let disk = target.disk.as_deref()?;
        let compared = self.compared();
        let mut numbers = self.recorded.iter().filter(|name| is_number(name) && !compared.contains(name));
        let number = numbers.next()?;
        let which = if numbers.next().is_some() { format!(", if {number} is {disk}") } else { String::new() };
        Some(format!(
            "the run does not have the device number of {disk}; `iosonar edit RECORDED x.load.parquet 'remap \
             map={number}:{disk}'` names the recorded device{which} (`lsblk` shows device numbers)"
        ))
    }
}

/// Whether a device is named by its numbers, `8,16`, as the kernel's traces do.
fn is_number(name: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once(',').is_some_and(|(major, minor)| is_digits(major) && is_digits(minor))
}

/// Recordings have few devices; traces of other programs may have any number.
fn group(index: usize) -> Group {
    Group::try_from(index + 1).unwrap_or(OTHERS)
}

/// Names, but not hundreds of them.
fn some(names: &[&str]) -> String {
    const MOST: usize = 8;
    let more = names.len().saturating_sub(MOST);
    let shown = names[..names.len() - more].join(" ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl Target {
    fn of(target: &RunTarget, recorded: &[String]) -> Self {
        let path = target.path.text().unwrap_or_default();
        let own = path.strip_prefix("/dev/").unwrap_or(path);
        let disk = target.disk.text();
        let find = |name: &str| recorded.iter().position(|recorded| !name.is_empty() && recorded == name);
        let (number, disk_number) = (target.number.text(), target.disk_number.text());
        // Other programs' recordings name devices by their numbers.
        let by_own = find(own).or_else(|| number.and_then(find));
        let found = by_own.or_else(|| disk.and_then(find)).or_else(|| disk_number.and_then(find));
        let is_file = target.kind.value() == Some(TargetKind::File);
        // `/dev/sda1` on `sda`; links such as `/dev/disk/by-id/…-part1` have names of their own.
        let on_part = match (number, disk_number) {
            (Some(own), Some(disk)) => own != disk,
            _ => disk.is_some_and(|disk| seems_part(own, disk)),
        };
        let is_part = !is_file && by_own.is_none() && found.is_some() && on_part;
        let shown = match (is_file, disk) {
            (true, Some(disk)) => format!("{path} (a file on {disk})"),
            (true, None) => path.to_owned(),
            (false, Some(disk)) if !is_part && by_own.is_none() => disk.to_owned(),
            (false, _) => own.to_owned(),
        };
        Self {
            shown,
            disk: disk.map(str::to_owned),
            recorded: found,
            is_part,
            sources: target.sources.list().to_vec(),
            others: target.others.value() == Some(true),
            flushes: Flushes::on(target),
            is_numbered: number.is_some(),
        }
    }
}

/// Whether a name is that of a disk with a number behind it, or of a link to a partition.
fn seems_part(name: &str, disk: &str) -> bool {
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
    fn another_device_is_told_of() {
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
    fn a_recording_without_names_is_told_of() {
        let found = devices(json!([block("/dev/loop1", "loop1")]), &[""]);
        assert!(found.notes()[0].contains("does not name its device"), "{:?}", found.notes());
        assert_eq!(found.notes().len(), 1);
    }

    #[test]
    fn the_same_device_is_compared_without_a_word() {
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
    fn a_device_recorded_by_its_numbers_is_found() {
        let whole = numbered("/dev/loop2", "loop2", "7,2", "7,2");
        let found = devices(json!([whole]), &["254,0", "7,2", "8,16"]);
        assert_eq!([0, 1, 2].map(|device| found.of_recorded(DeviceId(device))), [0, 2, 0]);
        assert_eq!((found.of_issued(DeviceId(0)), found.compared()), (2, vec!["7,2".to_owned()]));
        assert_eq!(found.notes().len(), 1, "of the others: {:?}", found.notes());
        // The name is surer than numbers, which another machine may have given to another device.
        assert_eq!(devices(json!([whole]), &["7,2", "loop2"]).of_issued(DeviceId(0)), 2);
    }

    #[test]
    fn a_partition_is_found_by_its_disks_numbers_and_told_of() {
        let part = numbered("/dev/disk/by-label/data", "sda", "8,3", "8,0");
        let found = devices(json!([part]), &["8,0"]);
        assert_eq!(found.of_issued(DeviceId(0)), 1);
        assert!(found.notes()[0].contains("a partition of the other"), "{:?}", found.notes());
        assert_eq!(devices(json!([part]), &["8,3"]).notes(), Vec::<String>::new());
    }

    #[test]
    fn a_run_that_knows_no_numbers_says_how_a_recorded_device_gets_its_name() {
        let way = "'remap map=7,2:loop2'";
        let notes = devices(json!([block("/dev/loop2", "loop2")]), &["7,2"]).notes();
        assert!(notes[1].contains(way) && !notes[1].contains(", if 7,2"), "{notes:?}");
        let notes = devices(json!([block("/dev/loop2", "loop2")]), &["7,2", "8,0"]).notes();
        assert!(notes[1].contains(way) && notes[1].contains(", if 7,2 is loop2"), "{notes:?}");
        // These are other devices: one by its name, one by its numbers.
        assert_eq!(devices(json!([block("/dev/loop2", "loop2")]), &["sda"]).notes().len(), 1);
        assert_eq!(devices(json!([numbered("/dev/loop2", "loop2", "7,2", "7,2")]), &["8,0"]).notes().len(), 1);
    }

    #[test]
    fn several_targets_have_a_group_each() {
        let targets = json!([
            {"path": "/dev/loop1", "kind": "block", "disk": "loop1", "sources": [0], "others": false},
            {"path": "/dev/loop2", "kind": "block", "disk": "loop2", "sources": [], "others": true},
        ]);
        let found = devices(targets, &["loop2", "loop3", "loop1"]);
        assert_eq!([0, 1, 5].map(|device| found.of_issued(DeviceId(device))), [3, 1, 1]);
        assert_eq!([0, 1, 2].map(|device| found.of_recorded(DeviceId(device))), [1, 0, 3]);
        assert_eq!(found.notes().len(), 1);
        assert!(found.notes()[0].contains("loop3 was no target"), "{:?}", found.notes());
    }

    #[test]
    fn a_partition_of_the_recorded_disk_is_told_of() {
        for path in ["/dev/sda3", "/dev/disk/by-id/ata-x-part3"] {
            let found = devices(json!([block(path, "sda")]), &["sda"]);
            assert!(found.notes()[0].contains("a partition of the other"), "{:?}", found.notes());
        }
        assert_eq!(devices(json!([block("/dev/sda3", "sda")]), &["sda3"]).notes(), Vec::<String>::new());
    }

    #[test]
    fn a_run_that_names_no_target_is_compared_as_it_is() {
        let found = Devices::of(&Metadata::new(Kind::Replay, "test"), &Metadata::new(Kind::Load, "test"));
        assert_eq!((found.of_issued(DeviceId(0)), found.of_recorded(DeviceId(0))), (0, 0));
        assert_eq!(found.notes(), Vec::<String>::new());
    }
}
