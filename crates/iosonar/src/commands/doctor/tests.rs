//! The checks, on machines made of files.

use std::fs;

use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::isolation::IsolationPart;

use super::found::{Effect, Found, State, Trial};
use super::host::Host;
use super::registry::CHECKS;
use super::{advise, examine, neighbours, trial};

/// A machine with these files.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn host(&self) -> Host {
        Host::new(self.0.path())
    }

    fn check(&self, name: &str) -> Found {
        (CHECKS.iter().find(|check| check.name == name).unwrap().run)(&self.host())
    }
}

fn check(name: &str, files: &[(&str, &str)]) -> Found {
    Machine::new(files).check(name)
}

/// The only change.
fn command(found: &Found) -> &str {
    assert_eq!(found.changes.len(), 1, "{found:?}");
    found.changes[0].command.as_deref().unwrap_or_default()
}

const STATUS: &str = "/proc/self/status";
const UNPRIVILEGED: &str = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n";
const ROOT: &str = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n";

#[test]
fn a_machine_that_tells_nothing_is_unknown_not_good() {
    for (name, found) in examine(&Machine::new(&[]).host()) {
        let is_absent = matches!(name, "io_uring" | "halt polling");
        assert!(is_absent || found.state != State::Good, "{name}: {found:?}");
    }
}

#[test]
fn forbidden_io_uring_is_permitted_by_a_command() {
    let found = check("io_uring", &[("/proc/sys/kernel/io_uring_disabled", "2\n")]);
    assert_eq!((found.state, command(&found)), (State::Missing, "sudo sysctl -w kernel.io_uring_disabled=0"));
    assert_eq!(check("io_uring", &[("/proc/sys/kernel/io_uring_disabled", "0\n")]).state, State::Good);
}

#[test]
fn recording_needs_type_information_and_rights() {
    let btf = ("/sys/kernel/btf/vmlinux", "");
    assert_eq!(check("eBPF", &[(STATUS, ROOT)]).state, State::Missing);
    let found = check("eBPF", &[btf, (STATUS, UNPRIVILEGED)]);
    assert!(found.what.contains("CAP_BPF and CAP_PERFMON") && command(&found).starts_with("sudo "), "{found:?}");
    let locked = ("/sys/kernel/security/lockdown", "none integrity [confidentiality]");
    assert_eq!(check("eBPF", &[btf, (STATUS, ROOT), locked]).state, State::Missing);
    if iosonar_record::is_built() {
        assert_eq!(check("eBPF", &[btf, (STATUS, ROOT)]).state, State::Good);
    }
}

#[test]
fn missing_capabilities_are_named() {
    assert_eq!(check("privileges", &[(STATUS, ROOT)]).state, State::Good);
    let found = check("privileges", &[(STATUS, "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000200000\n")]);
    assert!(found.what.contains("without CAP_SYS_NICE, CAP_IPC_LOCK"), "{found:?}");
    assert!(!found.what.contains("CAP_SYS_ADMIN") && command(&found).is_empty(), "sudo gives root nothing: {found:?}");
    assert!(command(&check("privileges", &[(STATUS, UNPRIVILEGED)])).contains("sudo"));
}

#[test]
fn the_limit_on_locked_memory_is_raised_if_it_is_low() {
    let limits =
        |soft: &str| format!("Limit  Soft Limit  Hard Limit  Units\nMax locked memory  {soft}  {soft}  bytes\n");
    let of = |soft: &str, status| check("locked memory", &[(STATUS, status), ("/proc/self/limits", &limits(soft))]);
    assert!(command(&of("65536", UNPRIVILEGED)).contains("--memlock=536870912:536870912"));
    assert_eq!(of("unlimited", UNPRIVILEGED).state, State::Good);
    assert_eq!(of("65536", ROOT).state, State::Good, "CAP_IPC_LOCK has no limit");
}

#[test]
fn one_processor_is_not_enough() {
    let online = |list| ("/sys/devices/system/cpu/online", list);
    let bound = ROOT.replace("0-3", "2");
    assert_eq!(check("processors", &[online("0-3"), (STATUS, ROOT)]).what, "4 online");
    assert_eq!(check("processors", &[online("0,2-4,7"), (STATUS, ROOT)]).what, "4 of 5 allowed");
    let found = check("processors", &[online("0-3"), (STATUS, &bound)]);
    assert!(command(&found).starts_with("taskset --cpu-list 0-3 "), "{found:?}");
    let found = check("processors", &[online("0"), (STATUS, ROOT)]);
    assert_eq!((found.state, command(&found)), (State::Improvable, ""));
}

#[test]
fn the_quota_of_a_group_above_holds_too() {
    let own = ("/proc/self/cgroup", "0::/a/b\n");
    let files = [own, ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"), ("/sys/fs/cgroup/a/cpu.max", "50000 100000\n")];
    let machine = Machine::new(&files);
    let found = machine.check("CPU quota");
    assert_eq!(command(&found), "echo max | sudo tee /sys/fs/cgroup/a/cpu.max");
    let set = vec![(machine.host().path("/sys/fs/cgroup/a/cpu.max"), "max".to_owned())];
    assert_eq!(found.changes[0].trial, Trial::Settings(set));
    assert_eq!(check("CPU quota", &files[..2]).state, State::Good);
}

#[test]
fn busy_neighbours_are_stopped_or_come_second() {
    let of = |ready, stolen_pct| neighbours::judge(&Contention { processors: 2, ready, stolen_pct });
    assert_eq!(of(0.1, 0.2).state, State::Good);
    let busy = of(1.4, 0.0);
    assert!(busy.what.ends_with("runnable threads of other programs on 2 processors"), "{busy:?}");
    assert_eq!(busy.changes[1].trial, Trial::Isolate(IsolationPart::Priority));
    let stolen = of(0.0, 12.0);
    assert!(stolen.what.contains("steals 12.0 %") && command(&stolen).is_empty(), "{stolen:?}");
}

#[test]
fn interrupts_of_the_loops_processor_are_moved_away() {
    let files = |cpu| {
        [("/proc/irq/24/effective_affinity_list", cpu), ("/proc/irq/25/effective_affinity_list", "1\n"), (STATUS, ROOT)]
    };
    let found = check("interrupts", &files("0\n"));
    assert_eq!((found.state, found.what.as_str()), (State::Improvable, "processor 0 serves 1 of 2"));
    assert_eq!(found.changes[0].trial, Trial::Isolate(IsolationPart::Interrupts));
    assert_eq!(check("interrupts", &files("1\n")).state, State::Good);
}

#[test]
fn a_slow_clock_source_is_replaced_if_there_is_another() {
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let (current, available) =
        (format!("{directory}/current_clocksource"), format!("{directory}/available_clocksource"));
    let of = |name, others| check("clock source", &[(current.as_str(), name), (available.as_str(), others)]);
    assert_eq!(of("tsc\n", "tsc hpet\n").state, State::Good);
    assert_eq!(of("kvm-clock\n", "kvm-clock acpi_pm\n").state, State::Good);
    assert_eq!(command(&of("hpet\n", "tsc hpet acpi_pm\n")), format!("echo tsc | sudo tee {current}"));
    assert_eq!(command(&of("acpi_pm\n", "hpet acpi_pm\n")), "");
}

#[test]
fn deep_idle_states_are_avoided_by_the_replay() {
    let state = |n, name: &str| format!("/sys/devices/system/cpu/cpu0/cpuidle/state{n}/{name}");
    let of = |disabled| {
        let files = [
            (state(0, "name"), "POLL"),
            (state(0, "latency"), "0"),
            (state(0, "disable"), "0"),
            (state(1, "name"), "C6"),
            (state(1, "latency"), "133"),
            (state(1, "disable"), disabled),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check("idle states", &files)
    };
    let found = of("0");
    assert_eq!(found.what, "the deepest is C6, which takes 133 µs to wake up");
    assert_eq!(found.changes[0].trial, Trial::Isolate(IsolationPart::Awake));
    assert_eq!(of("1").state, State::Good, "only those that are enabled count");
}

#[test]
fn processors_that_halt_at_once_should_poll() {
    let of = |governor, ns| {
        check(
            "halt polling",
            &[
                ("/sys/devices/system/cpu/cpuidle/current_governor", governor),
                ("/sys/module/haltpoll/parameters/guest_halt_poll_ns", ns),
            ],
        )
    };
    assert_eq!(of("haltpoll\n", "0\n").changes[0].trial, Trial::Isolate(IsolationPart::Polling));
    assert_eq!(of("haltpoll\n", "200000\n").state, State::Good);
    assert_eq!(of("menu\n", "0\n").state, State::Good);
}

#[test]
fn each_processor_gets_the_governor_performance() {
    let cpu = |n| format!("/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor");
    let machine = Machine::new(&[(&cpu(0), "powersave\n"), (&cpu(1), "performance\n")]);
    let found = machine.check("governor");
    let settings = [0, 1].map(|n| (machine.host().path(&cpu(n)), "performance".to_owned()));
    assert_eq!(found.changes[0].trial, Trial::Settings(settings.into()));
    assert_eq!(check("governor", &[(&cpu(0), "performance\n")]).state, State::Good);
}

#[test]
fn only_schedulers_of_disks_are_changed() {
    let file = |disk: &str| format!("/sys/block/{disk}/queue/scheduler");
    let of = |files: &[(&str, &str)]| {
        let files: Vec<(String, &str)> = files.iter().map(|(disk, line)| (file(disk), *line)).collect();
        check("schedulers", &files.iter().map(|(path, line)| (path.as_str(), *line)).collect::<Vec<_>>())
    };
    let found = of(&[("sda", "none [mq-deadline]\n"), ("nvme0n1", "[none] kyber\n"), ("loop0", "[bfq]\n")]);
    assert_eq!(found.what, "nvme0n1 none, sda mq-deadline");
    assert!(command(&found).ends_with("device scheduler /dev/sda none"));
    assert_eq!(of(&[("vda", "[none]\n")]).state, State::Good);
}

#[test]
fn measured_effects_come_before_expected_ones() {
    let machine = Machine::new(&[
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
        ("/sys/block/sda/queue/scheduler", "[bfq]"),
        ("/proc/sys/kernel/io_uring_disabled", "2"),
        (STATUS, ROOT),
        ("/sys/kernel/btf/vmlinux", ""),
    ]);
    let found: Vec<_> = examine(&machine.host()).into_iter().filter(|(name, _)| *name != "eBPF").collect();
    let order = |saved: fn(&Effect) -> f64| {
        let tried = |effect: &Effect| {
            let tried = that_saved(saved(effect));
            Ok(Some(tried))
        };
        let advice = advise(&found, |change| tried(&change.effect)).unwrap();
        advice.into_iter().map(|advice| advice.check).collect::<Vec<_>>()
    };
    assert_eq!(order(|_| 0.0), ["io_uring", "governor", "schedulers"]);
    assert_eq!(
        order(|effect| if *effect == Effect::Latencies { 30.0 } else { 0.0 }),
        ["io_uring", "schedulers", "governor"],
        "io_uring is needed for a feature, and not ranked"
    );
    assert_eq!(
        order(|effect| if *effect == Effect::ManyMicroseconds { -30.0 } else { 0.0 }),
        ["io_uring", "schedulers", "governor"]
    );
}

/// A trial that saved this many µs.
fn that_saved(saved_us: f64) -> trial::Outcome {
    let tried = trial::Tried {
        wait: iosonar_pacing::wait::Wait::Spin,
        before_us: vec![50.0],
        after_us: vec![50.0 - saved_us],
        verdict: trial::Verdict::Helps,
        saved_us: Some(saved_us),
    };
    trial::Outcome::Measured(vec![tried])
}

#[test]
fn all_trials_need_root() {
    let files = |status| {
        [
            ("/proc/irq/24/effective_affinity_list", "0\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
            ("/sys/devices/system/cpu/cpuidle/current_governor", "haltpoll\n"),
            ("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "0\n"),
            (STATUS, status),
        ]
    };
    let trials = |status| {
        let found = examine(&Machine::new(&files(status)).host());
        let of = |name: &&str| found.iter().find(|(check, _)| check == name).unwrap().1.changes[0].trial.clone();
        ["interrupts", "governor", "halt polling"].iter().map(of).collect::<Vec<_>>()
    };
    assert!(trials(ROOT).iter().all(|trial| !matches!(trial, Trial::Not(_))));
    assert_eq!(trials(UNPRIVILEGED), [const { Trial::Not("it needs root") }; 3]);
    let in_container = "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n";
    assert_eq!(trials(in_container), [const { Trial::Not("it needs CAP_SYS_ADMIN") }; 3]);
}

#[test]
fn small_effects_need_a_processor_without_neighbours() {
    let of = |processors, ready, stolen_pct| neighbours::is_too_busy(&Contention { processors, ready, stolen_pct });
    assert!(!of(2, 0.4, 0.2) && !of(2, 1.4, 0.0) && !of(16, 12.0, 0.0));
    assert!(of(2, 1.5, 0.0) && of(2, 12.0, 0.0) && of(16, 0.0, 3.7));
}

#[test]
fn a_trial_leaves_settings_as_they_were() {
    if iosonar_testing::left_out(iosonar_testing::Need::Root) {
        return;
    }
    let machine = Machine::new(&[("/setting", "before\n")]);
    let file = machine.host().path("/setting");
    let trial = Trial::Settings(vec![(file.clone(), "after".into())]);
    let outcome = trial::of(&trial, Effect::ManyMicroseconds, &iosonar_pacing::Stop::default()).unwrap();
    let trial::Outcome::Measured(tried) = outcome else { panic!("{outcome:?}") };
    assert!(
        tried.iter().all(|tried| tried.before_us.len() == trial::ROUNDS && tried.after_us.len() == trial::ROUNDS),
        "{tried:?}"
    );
    assert_eq!(fs::read_to_string(file).unwrap().trim(), "before");
    let missing = Trial::Settings(vec![(machine.host().path("/missing"), "after".into())]);
    let outcome = trial::of(&missing, Effect::ManyMicroseconds, &iosonar_pacing::Stop::default()).unwrap();
    assert!(matches!(outcome, trial::Outcome::NotTried(_)), "{outcome:?}");
}
