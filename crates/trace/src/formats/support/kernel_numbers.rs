//! The device numbers that Linux always gives to some names (its Documentation/admin-guide/devices.txt).

/// Disks of a major number of SCSI disks; each has 16 minor numbers: the disk, and its partitions.
const DISKS: u32 = 16;

/// The major numbers of SCSI disks, in the order of their names.
const SCSI: [u32; 16] = [8, 65, 66, 67, 68, 69, 70, 71, 128, 129, 130, 131, 132, 133, 134, 135];

/// Major and minor number of a device, such as 7 and 0 of loop0; `None` if Linux chooses them when the device appears.
pub fn number_of(name: &str) -> Option<(u32, u32)> {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    for (prefix, major) in [("loop", 7), ("md", 9), ("ram", 1), ("sr", 11)] {
        if let Some(minor) = name.strip_prefix(prefix).and_then(number) {
            return Some((major, minor));
        }
    }
    let name = name.strip_prefix("sd")?;
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let partition =
        if letters.len() == name.len() { 0 } else { number(&name[letters.len()..]).filter(|&it| it > 0)? };
    let disk = disk(letters)?;
    let major = *SCSI.get((disk / DISKS) as usize)?;
    (partition < 16).then_some((major, disk % DISKS * 16 + partition))
}

/// The same as text, as blkparse prints it.
pub fn text_of(name: &str) -> Option<String> {
    number_of(name).map(|(major, minor)| format!("{major},{minor}"))
}

fn number(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|&number: &u32| is_plain && number < 1 << 20)
}

/// The number of a SCSI disk by its letters: a is 0, z is 25, aa is 26.
fn disk(letters: &str) -> Option<u32> {
    let is_name = (1..=2).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_lowercase());
    is_name.then(|| letters.bytes().fold(0, |disk, byte| disk * 26 + u32::from(byte - b'a') + 1) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_names_have_the_numbers_of_the_kernel() {
        for (name, expected) in [
            ("loop0", "7,0"),
            ("/dev/loop12", "7,12"),
            ("md127", "9,127"),
            ("sda", "8,0"),
            ("sda1", "8,1"),
            ("sdp15", "8,255"),
            ("sdq", "65,0"),
            ("sdaa", "65,160"),
            ("sdiv", "135,240"),
            ("sdiw", ""),
            ("sda16", ""),
            ("sda0", ""),
            ("sd", ""),
            ("sd1", ""),
            ("loop", ""),
            ("loop00", ""),
            ("loop0p1", ""),
            ("loop4294967296", ""),
            ("nvme0n1", ""),
            ("dm-0", ""),
            ("vda", ""),
            ("sdé", ""),
        ] {
            assert_eq!(text_of(name).unwrap_or_default(), expected, "{name}");
        }
    }
}
