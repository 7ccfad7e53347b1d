//! The options of other programs, answered with those of iosonar: a tip for `--iodepth` and the like.

/// Options of one program that mean the same here: their names, without dashes, and what to use.
struct Peer {
    program: &'static str,
    names: &'static [&'static str],
    here: &'static str,
}

const fn peer(program: &'static str, names: &'static [&'static str], here: &'static str) -> Peer {
    Peer { program, names, here }
}

const LOAD: &str = "a load has its own requests: make one with `iosonar generate`, or run a job file, \
                    `iosonar workload run JOB.fio`";

/// By the command in which they are typed. Facts from the documentation of each program.
const PEERS: [(&str, &[Peer]); 3] = [
    (
        "replay",
        &[
            peer("fio", &["iodepth"], "use --depth"),
            peer("fio", &["filename", "replay_redirect"], "use --target"),
            peer("fio", &["ioengine"], "use --engine"),
            peer("fio", &["read_iolog"], "name the log as LOAD: iosonar replay LOG --target DEV"),
            peer("fio", &["replay_no_stall"], "use --asap"),
            peer("fio", &["replay_time_scale"], "use --speedup; 200 (percent) is --speedup 2"),
            peer("fio", &["replay_scale"], "use --fit, or --edit 'spread factor=0.5'"),
            peer("fio", &["replay_skip"], "use --reads-only, or --edit 'subst …'"),
            peer("fio", &["replay_align", "blockalign", "ba"], "use --align"),
            peer("fio", &["runtime", "time_based"], "use --loop --for TIME, or --duration for a part of the load"),
            peer("fio", &["loops"], "use --repeat, or --loop within a run"),
            peer("fio", &["direct"], "omit it: O_DIRECT is the default; --no-o-direct turns it off"),
            peer("fio", &["sync"], "use --o-sync"),
            peer("fio", &["hipri"], "use --poll"),
            peer("fio", &["sqthread_poll"], "use --sqpoll"),
            peer("fio", &["numjobs"], "use --issuers for several loops; --scale for more instances of a program"),
            peer("fio", &["randseed"], "use --seed"),
            peer("fio", &["output-format"], "use --json"),
            peer("fio", &["status-interval"], "use --progress"),
            peer("fio", &["ramp_time"], "replay all, then use iosonar report --skip-warm-up"),
            peer("fio", &["buffer_compress_percentage"], "use --compressible"),
            peer("fio", &["dedupe_percentage"], "use --dedupe"),
            peer("fio", &["rw", "readwrite", "bs", "blocksize", "size", "rwmixread", "rate_iops", "rate"], LOAD),
            peer("blkreplay", &["with-conflicts"], "use --conflicts allow"),
            peer("blkreplay", &["with-drop"], "use --conflicts drop"),
            peer("blkreplay", &["with-partial"], "use --conflicts partial"),
            peer("blkreplay", &["with-ordering"], "use --conflicts ordering"),
            peer("blkreplay", &["fan-out", "no-dispatcher"], "omit it: one loop submits all; --issuers adds loops"),
            peer("btreplay", &["map-devs"], "use --target SOURCE=DEV"),
            peer("btreplay", &["no-stalls"], "use --asap"),
            peer("btreplay", &["acc-factor"], "use --speedup"),
            peer("btreplay", &["iterations"], "use --repeat"),
            peer("btreplay", &["write-enable"], "omit it: writes are replayed; --reads-only leaves them out"),
            peer(
                "btreplay",
                &["input-directory", "input-base"],
                "name the traces as LOAD: iosonar replay TRACE.blktrace.0",
            ),
            peer("vdbench", &["elapsed"], "use --loop --for TIME, or --duration for a part of the load"),
            peer(
                "vdbench",
                &["iorate", "xfersize", "rdpct", "seekpct"],
                "run the parameter file: iosonar workload run FILE.vdb",
            ),
        ],
    ),
    (
        "generate",
        &[
            peer("fio", &["bs", "blocksize", "bssplit"], "use --size"),
            peer("fio", &["rw", "readwrite", "rwmixread"], "use --reads, the share of reads, and --positions"),
            peer("fio", &["rate_iops"], "use --rate"),
            peer("fio", &["runtime"], "use --duration"),
            peer("fio", &["filesize"], "use --span"),
            peer("fio", &["number_ios"], "use --requests"),
            peer("fio", &["random_distribution"], "use --positions"),
            peer("fio", &["randseed"], "use --seed"),
            peer("vdbench", &["xfersize"], "use --size"),
            peer("vdbench", &["iorate"], "use --rate"),
            peer("vdbench", &["rdpct"], "use --reads, the share of reads"),
            peer("vdbench", &["elapsed"], "use --duration"),
        ],
    ),
    (
        "record",
        &[
            peer("blktrace", &["dev"], "use --device"),
            peer("blktrace", &["stopwatch"], "use --duration"),
            peer("blktrace", &["buffer-size", "num-sub-buffers"], "use --buffer, the size of all"),
            peer("blktrace", &["output-dir"], "use --output"),
            peer("blktrace", &["act-mask", "set-mask"], "record all, then use iosonar edit 'select …'"),
            peer("fio", &["write_iolog", "filename"], "use --output for the load, --device for the device"),
        ],
    ),
];

/// What to use in a command for an option as typed: `--iodepth`, `--iodepth=4`, `elapsed=10`.
pub fn tip(command: &str, typed: &str) -> Option<String> {
    let name = typed.trim_start_matches('-').split('=').next()?;
    let (_, peers) = PEERS.iter().find(|(of, _)| *of == command)?;
    let found = peers.iter().find(|peer| peer.names.contains(&name))?;
    Some(format!("{} ({}'s {name})", found.here, found.program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tips_name_options_of_the_command() {
        let command_line = crate::command_line();
        for (command, peers) in &PEERS {
            let known = |option: &str| {
                let command = command_line.find_subcommand(command).unwrap();
                let mut all: Vec<_> = command.get_subcommands().collect();
                all.push(command);
                all.iter()
                    .flat_map(|command| command.get_arguments())
                    .any(|argument| argument.get_long() == Some(option))
            };
            for peer in *peers {
                for name in peer.names {
                    assert!(!known(name), "{command} --{name}");
                    assert_eq!(tip(command, &format!("--{name}=4")), tip(command, name));
                }
                let here = peer.here.split("iosonar report").next().unwrap();
                for word in here.split([' ', ',', ';', ':']).filter_map(|word| word.strip_prefix("--")) {
                    assert!(known(word), "{command}: {}: --{word}", peer.here);
                }
            }
        }
        assert_eq!(tip("replay", "--iodepth=4").unwrap(), "use --depth (fio's iodepth)");
        assert_eq!(tip("replay", "--no-such"), None);
    }
}
