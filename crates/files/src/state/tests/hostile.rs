//! Calls that no kernel would return: nothing of them may end the program.

use iosonar_trace::Nanos;
use proptest::prelude::*;

use super::super::{Options, State};
use super::script::Script;
use crate::{Call, CallKind, Metadata, Name};

#[test]
fn a_thread_does_not_create_itself() {
    for kind in ["clone", "clone3", "fork", "vfork"] {
        for flags in [0, libc::CLONE_FS, libc::CLONE_FILES, libc::CLONE_THREAD, libc::CLONE_FS | libc::CLONE_FILES] {
            for child in [1, 2, (1 << 32) + 1] {
                let mut script = Script::new();
                script.call("getcwd", |call| call.path = Some("/a".into()));
                for thread in [1, 2, 1] {
                    script.call_of(thread, kind, |call| {
                        (call.process, call.flags, call.result) = (1, flags as u64, Some(child));
                    });
                    script.call_of(thread, "chdir", |call| (call.process, call.path) = (1, Some("b".into())));
                }
                script.run(Options::default());
            }
        }
    }
}

/// A call with small numbers, so that threads, descriptors and names meet.
fn any_call() -> impl Strategy<Value = Call> {
    let number = || prop::option::of(-2..6_i32);
    let path = || prop::option::of(prop::sample::select(vec!["", "/", "a", "/a", "/a/b", "a/../b", "/proc/self/fd/3"]));
    let size = || prop::option::of(prop::sample::select(vec![0, 1, -1, 3, 4096, i64::MAX, i64::MIN]));
    let flags = prop_oneof![
        any::<u64>(),
        Just(0),
        (0..0x2000_u64),
        prop::sample::select(vec![
            0x4004_9409,
            0x4020_940d,
            0xc018_9436,
            0x5451,
            0x40,
            0x10_0000,
            0x1_0000,
            0x200,
            0x400,
            0x900,
            4,
            0x1000
        ])
    ];
    let who = (0..5_u32, 0..4_u32, prop::sample::select(CallKind::ALL.to_vec()), any::<bool>());
    let times = (0..3_i64, prop::option::of(0..40_i64));
    let errno = prop_oneof![3 => Just(0), 1 => 1..140_i32];
    (who, times, (number(), number()), (path(), path()), (size(), size(), size(), size()), (flags, errno)).prop_map(
        |((thread, process, kind, is_uring), (step, duration), (fd, fd2), (path, path2), sizes, (flags, errno))| Call {
            duration: duration.map(Nanos),
            process,
            is_uring,
            fd,
            fd2,
            path: path.map(Name::from),
            path2: path2.map(Name::from),
            offset: sizes.0,
            offset2: sizes.1,
            length: sizes.2.map(|size| size as u64),
            flags,
            mode: Some(flags as u32),
            result: if errno > 0 { Some(-1) } else { sizes.3.or(fd.map(i64::from)) },
            errno,
            ..Call::new(Nanos(step), thread, kind)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_are_followed(calls in prop::collection::vec(any_call(), 1..60)) {
        let mut state = State::new(&Metadata::default(), Options { with_needs: true, ..Options::default() });
        let mut now = 0;
        for mut call in calls {
            now += call.begin.0;
            call.begin = Nanos(now);
            state.next(&call);
            state.take_inferred();
        }
        state.open_descriptions();
        state.warnings();
        prop_assert!(state.needs().is_some_and(|needs| needs.iter().all(|(path, _)| !path.is_empty())));
    }
}

#[test]
fn paths_from_too_deep_a_directory_do_not_lead_elsewhere() {
    let mut script = Script::new();
    let component = "d".repeat(200);
    let down = |call: &mut Call| call.path = Some(component.as_str().into());
    let up = |call: &mut Call| call.path = Some("..".into());
    script.call("mkdir", |call| call.path = Some("/a".into())).call("chdir", |call| call.path = Some("/a".into()));
    for _ in 0..30 {
        script.call("mkdir", down).call("chdir", down);
    }
    for _ in 0..30 {
        script.call("chdir", up).call("rmdir", down);
    }
    script.call("chdir", |call| call.path = Some("/a".into())).call("rmdir", down);
    let (state, resolved) = script.run(Options::default());
    let removed = |at: usize| script.calls[at].kind == CallKind::Rmdir && resolved[at].skip.is_none();
    assert_eq!((0..resolved.len()).filter(|&at| removed(at)).collect::<Vec<_>>(), [resolved.len() - 1]);
    assert_eq!(resolved.last().unwrap().path, Some(format!("/a/{component}").as_str().into()));
    assert!(state.counts().unknown_starts > 60);
}

#[test]
fn parents_of_removed_directories_lead_up() {
    let mut script = Script::new();
    let on = |path: &str| {
        let path = Name::from(path);
        move |call: &mut Call| call.path = Some(path)
    };
    script.call("mkdir", on("/a")).call("mkdir", on("/a/b")).call("mkdir", on("/a/b/c")).call("mkdir", on("/a/b/c/d"));
    script.call("chdir", on("/a/b/c/d"));
    script.call("rmdir", on("/a/b/c/d")).call("rmdir", on("/a/b/c")).call("rmdir", on("/a/b"));
    script.call("mkdir", on("../../../b")).call("chdir", on("/")).call("mkdir", on("/a/b/e"));
    let (state, resolved) = script.run(Options::default());
    assert_eq!(resolved[8].path, Some("/a/b".into()));
    // The root, /a, /a/b and /a/b/e are left.
    assert_eq!((state.counts().appeared, state.names.len().0), (0, 4));
}
