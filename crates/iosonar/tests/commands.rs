//! Each command as its users run it: one module for each command or question.

mod advice;
mod cache;
mod calls;
mod check;
mod convert;
mod data;
mod device;
mod devices;
mod discards;
mod documentation;
mod edit;
mod engines;
mod escapes;
mod exit_codes;
mod external;
mod failing;
mod faults;
mod files_hostile;
mod files_killed;
mod files_order;
mod files_prepare;
mod files_record;
mod files_replay;
mod files_roots;
mod files_trees;
mod generate;
mod help;
mod hostile;
mod hostile_roots;
mod in_use;
mod interrupted;
mod isolate;
mod issuers;
mod limit;
mod modes;
mod odd_footers;
mod odd_paths;
mod outputs;
mod precious;
mod reasons;
mod record;
mod recording;
mod replay;
mod replaying;
mod safety;
#[allow(unsafe_code, reason = "a seccomp filter, as containers have one, is set by two system calls")]
mod seccomp;
#[allow(unsafe_code, reason = "a file system is shut down by a call of its own")]
mod shutdown;
mod signals;
mod start;
#[allow(unsafe_code, reason = "system calls without a wrapper")]
mod syscalls;
mod verify;
mod workload_convert;
mod workload_run;
