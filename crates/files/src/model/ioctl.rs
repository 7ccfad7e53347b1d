//! Which requests of `ioctl` concern files, and what they do. Sources: `linux/fs.h`, `linux/fscrypt.h`, `linux/fsverity.h`,
//! `linux/btrfs.h` and the headers of ext4 and XFS; the numbers are those of x86-64 and ARM64.

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It asks for something, or changes how the kernel keeps the file: what later calls see stays the same.
    Nothing,
    /// It sets or clears the flag that lets `execve` close the descriptor.
    ClosesOnExec(bool),
    /// It changes files.
    Changes,
}

/// `FICLONE`: the argument is the descriptor of the source.
pub const FICLONE: u32 = 0x4004_9409;
/// `FICLONERANGE`: the argument points to the descriptor of the source, both offsets and the length.
pub const FICLONERANGE: u32 = 0x4020_940d;
/// `FIDEDUPERANGE`: the descriptor is the source; the argument points to its range and to destinations.
pub const FIDEDUPERANGE: u32 = 0xc018_9436;

use Effect::{Changes, ClosesOnExec, Nothing};

/// Requests by name. Those that are not here change files, unless the number says that the kernel only writes an answer.
pub const REQUESTS: &[(&str, u32, Effect)] = &[
    ("FIBMAP", 1, Nothing),
    ("FIGETBSZ", 2, Nothing),
    ("FIONREAD", 0x541b, Nothing),
    ("FIONBIO", 0x5421, Nothing),
    ("FIONCLEX", 0x5450, ClosesOnExec(false)),
    ("FIOCLEX", 0x5451, ClosesOnExec(true)),
    ("FIOASYNC", 0x5452, Nothing),
    ("FIOQSIZE", 0x5460, Nothing),
    ("FS_IOC_FIEMAP", 0xc020_660b, Nothing),
    ("FS_IOC_GETFSMAP", 0xc0c0_583b, Nothing),
    ("FS_IOC_GET_ENCRYPTION_POLICY", 0x400c_6615, Nothing),
    ("FS_IOC_GET_ENCRYPTION_POLICY_EX", 0xc009_6616, Nothing),
    ("FS_IOC_GET_ENCRYPTION_KEY_STATUS", 0xc080_661a, Nothing),
    ("FS_IOC_GET_ENCRYPTION_PWSALT", 0x4010_6614, Nothing),
    ("FS_IOC_MEASURE_VERITY", 0xc004_6686, Nothing),
    ("FS_IOC_READ_VERITY_METADATA", 0xc028_6687, Nothing),
    ("FITRIM", 0xc018_5879, Nothing),
    ("FIFREEZE", 0xc004_5877, Nothing),
    ("FITHAW", 0xc004_5878, Nothing),
    ("XFS_IOC_GETBMAP", 0xc020_5826, Nothing),
    ("XFS_IOC_GETBMAPX", 0xc020_5838, Nothing),
    ("XFS_IOC_FSBULKSTAT", 0xc020_5865, Nothing),
    ("XFS_IOC_SCRUB_METADATA", 0xc040_583c, Nothing),
    ("EXT4_IOC_ALLOC_DA_BLKS", 0x660c, Nothing),
    ("EXT4_IOC_GETSTATE", 0x4004_6629, Nothing),
    ("BTRFS_IOC_DEFRAG", 0x5000_9402, Nothing),
    ("BTRFS_IOC_DEFRAG_RANGE", 0x4030_9410, Nothing),
    ("BTRFS_IOC_SYNC", 0x9408, Nothing),
    ("BTRFS_IOC_START_SYNC", 0x8008_9418, Nothing),
    ("BTRFS_IOC_WAIT_SYNC", 0x4008_9416, Nothing),
    ("BTRFS_IOC_TREE_SEARCH", 0xd000_9411, Nothing),
    ("BTRFS_IOC_TREE_SEARCH_V2", 0xc070_9411, Nothing),
    ("BTRFS_IOC_INO_LOOKUP", 0xd000_9412, Nothing),
    ("BTRFS_IOC_INO_PATHS", 0xc038_9423, Nothing),
    ("BTRFS_IOC_LOGICAL_INO", 0xc038_9424, Nothing),
    ("BTRFS_IOC_LOGICAL_INO_V2", 0xc038_943b, Nothing),
    ("BTRFS_IOC_SPACE_INFO", 0xc010_9414, Nothing),
    ("BTRFS_IOC_DEV_INFO", 0xd000_941e, Nothing),
    ("BTRFS_IOC_GET_DEV_STATS", 0xc408_9434, Nothing),
    ("BTRFS_IOC_GET_SUBVOL_ROOTREF", 0xd000_943d, Nothing),
    ("FIDEDUPERANGE", FIDEDUPERANGE, Nothing),
    ("BTRFS_IOC_FILE_EXTENT_SAME", FIDEDUPERANGE, Nothing),
    ("FICLONE", FICLONE, Changes),
    ("FICLONERANGE", FICLONERANGE, Changes),
    ("FS_IOC_SETFLAGS", 0x4008_6602, Changes),
    ("FS_IOC32_SETFLAGS", 0x4004_6602, Changes),
    ("FS_IOC_SETVERSION", 0x4008_7602, Changes),
    ("FS_IOC_FSSETXATTR", 0x401c_5820, Changes),
    ("FS_IOC_SETFSLABEL", 0x4100_9432, Changes),
    // Its number says that the kernel writes, which it does not.
    ("FS_IOC_SET_ENCRYPTION_POLICY", 0x800c_6613, Changes),
    ("FS_IOC_ADD_ENCRYPTION_KEY", 0xc050_6617, Changes),
    ("FS_IOC_REMOVE_ENCRYPTION_KEY", 0xc040_6618, Changes),
    ("FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS", 0xc040_6619, Changes),
    ("FS_IOC_ENABLE_VERITY", 0x4080_6685, Changes),
    ("XFS_IOC_ALLOCSP", 0x4030_580a, Changes),
    ("XFS_IOC_FREESP", 0x4030_580b, Changes),
    ("XFS_IOC_ALLOCSP64", 0x4030_5824, Changes),
    ("XFS_IOC_FREESP64", 0x4030_5825, Changes),
    ("XFS_IOC_RESVSP", 0x4030_5828, Changes),
    ("XFS_IOC_UNRESVSP", 0x4030_5829, Changes),
    ("XFS_IOC_RESVSP64", 0x4030_582a, Changes),
    ("XFS_IOC_UNRESVSP64", 0x4030_582b, Changes),
    ("XFS_IOC_ZERO_RANGE", 0x4030_5839, Changes),
    ("XFS_IOC_SWAPEXT", 0xc0c0_586d, Changes),
    ("XFS_IOC_EXCHANGE_RANGE", 0x4028_5881, Changes),
    ("EXT4_IOC_MOVE_EXT", 0xc028_660f, Changes),
    ("EXT4_IOC_SWAP_BOOT", 0x6611, Changes),
    ("BTRFS_IOC_SNAP_CREATE", 0x5000_9401, Changes),
    ("BTRFS_IOC_SUBVOL_CREATE", 0x5000_940e, Changes),
    ("BTRFS_IOC_SNAP_DESTROY", 0x5000_940f, Changes),
    ("BTRFS_IOC_SNAP_CREATE_V2", 0x5000_9417, Changes),
    ("BTRFS_IOC_SUBVOL_CREATE_V2", 0x5000_9418, Changes),
    ("BTRFS_IOC_SNAP_DESTROY_V2", 0x5000_943f, Changes),
    ("BTRFS_IOC_SUBVOL_SETFLAGS", 0x4008_941a, Changes),
];

/// What a request does that succeeded on a file.
pub fn effect(request: u32) -> Effect {
    const ANSWERS: u32 = 2;
    match REQUESTS.iter().find(|(_, number, _)| *number == request) {
        Some((_, _, effect)) => *effect,
        None if request >> 30 == ANSWERS => Nothing,
        None => Changes,
    }
}

pub fn name(request: u32) -> Option<&'static str> {
    REQUESTS.iter().find(|(_, number, _)| *number == request).map(|(name, ..)| *name)
}
