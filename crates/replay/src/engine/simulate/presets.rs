//! Descriptions of simulated devices that are part of the program.

/// A description by name.
#[derive(Debug)]
pub struct Preset {
    /// The name for `--simulate`.
    pub name: &'static str,
    /// The description, in TOML.
    pub text: &'static str,
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset { name: "hdd", text: include_str!("presets/hdd.toml") },
    Preset { name: "sata-ssd", text: include_str!("presets/sata-ssd.toml") },
    Preset { name: "nvme", text: include_str!("presets/nvme.toml") },
    Preset { name: "raid5-bbu", text: include_str!("presets/raid5-bbu.toml") },
    Preset { name: "thin-san", text: include_str!("presets/thin-san.toml") },
    Preset { name: "cloud-volume", text: include_str!("presets/cloud-volume.toml") },
    Preset { name: "hdd-behind-cache", text: include_str!("presets/hdd-behind-cache.toml") },
];
