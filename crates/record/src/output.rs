//! Where the recording itself must not be written.

use std::path::Path;

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::place::{Found, found_below};

/// Refuses an output whose writes would be recorded, or would be in the way of what is. Returns what to warn of where nobody
/// can tell.
///
/// # Errors
/// If it would lie on the disk of one of the devices, or its folder can't be looked at.
pub fn refuse_output_on(devices: &[BlockDevice], output: &Path) -> Result<Option<String>> {
    if output == Path::new("-") {
        return Ok(None);
    }
    let place = if output.exists() { output } else { folder_of(output) };
    let Found { disks, unknown, .. } = found_below(place).map_err(|e| Error::system(place.display().to_string(), e))?;
    if let Some(device) = devices.iter().find(|device| disks.contains(&device.disk_name)) {
        let (output, disk, name) = (output.to_owned(), device.disk_name.clone(), device.name.clone());
        return Err(match device.partition {
            None => Error::OutputOnRecorded { output, disk },
            Some(_) => Error::OutputBesideRecorded { output, disk, partition: name },
        });
    }
    Ok(unknown.map(|why| {
        format!(
            "cannot tell on which disks {} lies ({why}): if one of them is recorded, the recording includes its own \
             writes",
            place.display()
        )
    }))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_which_nobody_can_tell_where_it_lies_is_warned_of() {
        let warning = refuse_output_on(&[], Path::new("/proc/a.load")).unwrap().unwrap();
        assert!(warning.contains("its file system is proc"), "{warning}");
        assert_eq!(refuse_output_on(&[], Path::new("/dev/shm/a.load")).unwrap(), None);
    }
}
