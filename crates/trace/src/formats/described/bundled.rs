//! The descriptions that come with iosonar: a file in `bundled/`, and a line here.

use std::sync::{Arc, LazyLock};

use super::Description;
use crate::formats::format::Format;

/// A format, from its name, which is that of its file, and its title.
macro_rules! bundled {
    ($($name:literal $title:literal)*) => {
        /// All of them, as formats.
        pub const FORMATS: &[&Format] = &[$({
            static DESCRIPTION: LazyLock<Arc<Description>> = LazyLock::new(|| parsed($name, text($name)));
            &Format {
                title: $title,
                recognise: |head| super::recognises(head, &DESCRIPTION),
                open: |input, _| super::open(input, $name, &DESCRIPTION),
                ..Format::named($name)
            }
        }),*];

        /// The TOML of each name.
        pub const TEXTS: &[(&str, &str)] = &[$(($name, include_str!(concat!("bundled/", $name, ".toml")))),*];
    };
}

bundled! {
    "diskmon" "log of Windows DiskMon"
    "disksim" "ASCII trace of DiskSim"
    "mqsim" "ASCII trace of MQSim and SSDsim"
    "ioda" "trace for the replayer of IODA and FEMU"
    "k5cloud" "FUJITSU K5 cloud trace (SNIA IOTTA, CSV)"
    "hfplayer" "trace of NetApp for hfplayer (CSV)"
    "iotrace" "trace of Open-CAS iotrace (CSV)"
    "wpa" "disk table of Windows Performance Analyzer (CSV)"
    "libcachesim-csv" "block trace of libCacheSim (CSV)"
    "oracle-general" "trace of libCacheSim, oracleGeneral (binary)"
    "iosnoop" "output of iosnoop (perf-tools) with -s or -t"
}

/// The TOML of the description of this name.
pub fn text(name: &str) -> &'static str {
    TEXTS.iter().find(|(bundled, _)| *bundled == name).map_or("", |(_, text)| text)
}

fn parsed(name: &str, text: &str) -> Arc<Description> {
    // Tests parse all of them.
    Description::parse(&format!("{name}.toml"), text).unwrap_or_else(|why| unreachable!("{why}"))
}
