//! Every parameter of vdbench's parameter files for raw devices, and what becomes of it.

use crate::conversion::options::{JobOption, converted, ignored, refused};

const HOSTS: &str = "how vdbench spreads its processes";
const RESULT: &str = "what vdbench reports; iosonar records every request";
const SWEEP: &str = "a series of runs; use iosonar sweep";
const FILES: &str = "calls to files; see iosonar files";
const COMMAND: &str = "a command beside the run; run it yourself";
const COPIES: &str = "copies are of earlier blocks, at most 1024 of them (docs/data.md)";
const DATA: &str = "data of writes; see docs/data.md for the options of the run";
const CHECKS: &str = "how vdbench checks data; iosonar replay has --verify";

/// Parameters outside of definitions.
pub static GENERAL: &[JobOption] = &[
    converted(&["include"]),
    converted(&["compratio", "compression"]),
    converted(&["dedupratio"]),
    converted(&["dedupunit"]),
    refused(&["fsd"], FILES),
    refused(&["fwd"], FILES),
    refused(&["rg"], "a replay group; convert the trace with iosonar convert, and replay it"),
    refused(&["replay"], "a trace; convert it with iosonar convert, and replay it"),
    ignored(&["hd"], HOSTS),
    ignored(&["port"], HOSTS),
    ignored(&["dedupsets"], COPIES),
    ignored(&["deduphotsets"], COPIES),
    ignored(&["dedupflipflop"], COPIES),
    ignored(&["dedupacross"], COPIES),
    ignored(&["pattern", "patterns"], DATA),
    ignored(&["validate"], CHECKS),
    ignored(&["data_errors"], CHECKS),
    ignored(&["force_error_after"], CHECKS),
    ignored(&["journal"], CHECKS),
    ignored(&["create_anchors"], FILES),
    ignored(&["debug"], RESULT),
    ignored(&["report"], RESULT),
    ignored(&["histogram"], RESULT),
    ignored(&["monitor"], RESULT),
    ignored(&["messagescan"], RESULT),
    ignored(&["showlba"], RESULT),
    ignored(&["fwd_thread_adjust"], RESULT),
    ignored(&["startcmd"], COMMAND),
    ignored(&["endcmd"], COMMAND),
    ignored(&["concatenate", "concatenatesds"], "how devices are joined"),
];

/// Parameters of storage definitions.
pub static SD: &[JobOption] = &[
    converted(&["sd"]),
    converted(&["lun"]),
    converted(&["size"]),
    converted(&["threads"]),
    converted(&["openflags"]),
    converted(&["offset"]),
    converted(&["align"]),
    converted(&["range"]),
    converted(&["dedupratio"]),
    refused(&["count"], "several devices at once; write an sd for each"),
    ignored(&["hitarea"], "where hits of a cache go: without rhpct and whpct it has no effect"),
    refused(&["replay"], "a trace; convert it with iosonar convert, and replay it"),
    refused(&["streams"], "several sequential streams in one; write a wd for each, with its range"),
    ignored(&["host", "hd"], HOSTS),
    ignored(&["resetbus"], CHECKS),
    ignored(&["resetlun"], CHECKS),
    ignored(&["journal"], CHECKS),
    ignored(&["dedupsets"], COPIES),
];

/// Parameters of workload definitions.
pub static WD: &[JobOption] = &[
    converted(&["wd"]),
    converted(&["sd"]),
    converted(&["xfersize"]),
    converted(&["rdpct", "readpct"]),
    converted(&["seekpct"]),
    converted(&["rhpct"]),
    converted(&["whpct"]),
    converted(&["skew"]),
    converted(&["range"]),
    converted(&["iorate"]),
    refused(&["stride"], "skips of random length between sequential requests; use seekpct"),
    refused(&["priority"], "shares what other workloads leave; use skew"),
    refused(&["streams"], "several sequential streams in one; write a wd for each, with its range"),
    refused(&["hotband"], "hot spots that move; use a wd for each, with its range and skew"),
    refused(&["openflags"], "set it for the sd"),
    refused(&["threads"], "set it for the sd or the rd"),
    ignored(&["host", "hd"], HOSTS),
];

/// Parameters of run definitions.
pub static RD: &[JobOption] = &[
    converted(&["rd"]),
    converted(&["wd"]),
    converted(&["sd"]),
    converted(&["iorate"]),
    converted(&["elapsed"]),
    converted(&["warmup"]),
    converted(&["pause"]),
    converted(&["threads"]),
    converted(&["distribution"]),
    converted(&["xfersize"]),
    converted(&["rdpct", "readpct"]),
    converted(&["seekpct"]),
    converted(&["rhpct"]),
    converted(&["whpct"]),
    converted(&["range"]),
    refused(&["curve"], SWEEP),
    refused(&["stopcurve"], SWEEP),
    refused(&["forxfersize"], SWEEP),
    refused(&["forthreads"], SWEEP),
    refused(&["forrdpct", "forreadpct"], SWEEP),
    refused(&["forrhpct"], SWEEP),
    refused(&["forwhpct"], SWEEP),
    refused(&["forseekpct"], SWEEP),
    refused(&["forhitarea"], SWEEP),
    refused(&["forcompratio", "forcompression"], SWEEP),
    refused(&["fordedupratio"], SWEEP),
    refused(&["forrange"], SWEEP),
    refused(&["maxdata"], "ends after so many bytes; use elapsed"),
    refused(&["format"], FILES),
    refused(&["fwd"], FILES),
    refused(&["fwdrate"], FILES),
    refused(&["operations"], FILES),
    refused(&["foroperations"], FILES),
    refused(&["openflags"], "set it for the sd"),
    refused(&["replay"], "a trace; convert it with iosonar convert, and replay it"),
    ignored(&["interval"], RESULT),
    ignored(&["startcmd"], COMMAND),
    ignored(&["endcmd"], COMMAND),
];
