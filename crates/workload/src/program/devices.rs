//! The devices of a program, and where they are on the target.

use iosonar_trace::params::{Section, Text};
use iosonar_trace::{DeviceId, MAX_END_SECTOR, Sectors};
use toml::Spanned;
use toml::de::DeValue;

use super::keys::DEVICE;
use super::model::{Layout, Settings};
use super::parts::Placed;
use crate::region::Extent;

pub(super) fn placed(section: &Section<'_, '_>, settings: &Settings) -> Result<Vec<Placed>, String> {
    if settings.scale == 0 {
        return Err("the scale is 0: set it to 1 or more".into());
    }
    sizes(&device_texts(section)?, settings).map_err(|why| section.error("devices", &why))
}

/// A device as in the text.
pub(super) struct DeviceText {
    pub name: String,
    size: Extent,
    is_per_scale: bool,
}

pub(super) fn device_texts(section: &Section<'_, '_>) -> Result<Vec<DeviceText>, String> {
    let names = section.names("devices")?;
    if names.is_empty() {
        return Ok(vec![DeviceText { name: "target".into(), size: Extent::Share(1.0), is_per_scale: false }]);
    }
    names.into_iter().map(|(name, value)| device_text(section.text, name, value)).collect()
}

fn device_text(text: &Text<'_>, name: &str, value: &Spanned<DeValue<'_>>) -> Result<DeviceText, String> {
    let at = value.span().start;
    let what = format!("devices, {name}");
    let name = name.to_owned();
    let Some(table) = value.get_ref().as_table() else {
        let size = text.scalar(value).and_then(|size| Extent::parse_size(&size));
        return Ok(DeviceText { name, size: size.map_err(|why| text.error(at, &what, &why))?, is_per_scale: false });
    };
    let section = Section::new(text, at, what, table, DEVICE)?;
    let size = section.parsed("size", Extent::parse_size)?.ok_or_else(|| section.error("size", "missing; add it"))?;
    Ok(DeviceText { name, size, is_per_scale: section.flag("per_scale")?.unwrap_or(false) })
}

/// Where the devices are on the target.
pub(super) fn sizes(devices: &[DeviceText], settings: &Settings) -> Result<Vec<Placed>, String> {
    if let Layout::Separate(sizes) = &settings.layout
        && sizes.len() != devices.len()
    {
        return Err(format!("the program has {} devices, but sizes of {} were given", devices.len(), sizes.len()));
    }
    let mut first = 0_u64;
    let mut all = Vec::new();
    for (number, DeviceText { name, size, is_per_scale }) in devices.iter().enumerate() {
        let factor = if *is_per_scale { settings.scale } else { 1 };
        let (whole, id) = match &settings.layout {
            Layout::Together(size) => (*size, 0),
            Layout::Separate(sizes) => (sizes[number], number as u16),
        };
        // A target of its own is all of the device's, if that has a share of the target.
        let own = match (size, &settings.layout) {
            (Extent::Share(_), Layout::Separate(_)) => whole.0,
            _ => size.of(whole).saturating_mul(factor),
        };
        let is_together = matches!(settings.layout, Layout::Together(_));
        let end = if is_together { first.saturating_add(own) } else { own };
        if end > whole.0 || whole.0 > MAX_END_SECTOR {
            return Err(format!(
                "device {name} ends at sector {end}, but the target has {}; use a larger target{}",
                whole.0.min(MAX_END_SECTOR),
                if *is_per_scale { " or a smaller --scale" } else { " or smaller sizes" },
            ));
        }
        if own == 0 {
            return Err(format!(
                "device {name} has no sectors on a target of {} sectors; use a larger target",
                whole.0
            ));
        }
        all.push(Placed { name: name.clone(), id: DeviceId(id), first, size: Sectors(own) });
        first = if is_together { end.next_multiple_of(8) } else { 0 };
    }
    Ok(all)
}
