//! Refuses output files on the devices that are recorded.

use std::path::Path;

use crate::backing_disks::BackingDisks;
use crate::device::BlockDevice;
use crate::error::{Error, Result};

/// Refuses an output whose writes would be recorded, or would disturb the recorded device. Returns a warning if the
/// disks below the output cannot be determined.
///
/// # Errors
/// If the output is on the disk of one of the devices, or its directory cannot be examined.
pub fn refuse_output_on(devices: &[BlockDevice], output: &Path) -> Result<Option<String>> {
    if output == Path::new("-") {
        return Ok(None);
    }
    let place = if output.exists() { output } else { directory_of(output) };
    let below = BackingDisks::of(place).map_err(|e| Error::system(place.display().to_string(), e))?;
    if let Some(device) = devices.iter().find(|device| below.names.contains(&device.disk_name)) {
        let (output, disk, name) = (output.to_owned(), device.disk_name.clone(), device.name.clone());
        return Err(match device.partition {
            None => Error::OutputOnRecorded { output, disk },
            Some(_) => Error::OutputBesideRecorded { output, disk, partition: name },
        });
    }
    Ok(below.uncertainty.map(|why| {
        format!(
            "cannot determine the disks below {} ({why}): if one of them is recorded, the recording includes its own \
             writes",
            place.display()
        )
    }))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_on_an_unknown_disk_is_warned_about() {
        let warning = refuse_output_on(&[], Path::new("/proc/a.load")).unwrap().unwrap();
        assert!(warning.contains("its file system is proc"), "{warning}");
        assert_eq!(refuse_output_on(&[], Path::new("/dev/shm/a.load")).unwrap(), None);
    }
}
