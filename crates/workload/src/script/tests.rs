use proptest::prelude::*;

use crate::filament::SubmittedRequest;
use crate::program::tests::{on_a_device, open_requests, together};
use crate::program::{Placement, Program, Settings};
use iosonar_trace::{Flags, Kind, Metadata, Nanos, Op, Reader};

fn text(script: &str, keys: &str) -> String {
    format!("name = \"p\"\nabout = \"A test\"\n[[stream]]\nname = \"s\"\n{keys}\ncode = '''\n{script}'''\n")
}

/// The script starts on line 7 if there are no more keys.
fn parse(script: &str) -> Result<Program, String> {
    Program::parse("p.toml", &text(script, "# none"))
}

fn program(script: &str, keys: &str) -> Program {
    Program::parse("p.toml", &text(script, keys)).unwrap_or_else(|why| panic!("{why}"))
}

/// Why a script ends the program on a device that serves each request in 1 ms.
fn failure(script: &str) -> String {
    failure_of(&parse(script).unwrap_or_else(|why| panic!("{why}")))
}

fn failure_of(program: &Program) -> String {
    let mut runtime = program.place(&together()).unwrap().runtime().unwrap();
    let mut now = Nanos::ZERO;
    for _ in 0..200_000 {
        while let Some(submitted) = runtime.next_due(now) {
            if let Some(ticket) = submitted.ticket {
                runtime.completed(ticket, iosonar_trace::Outcome::Ok, submitted.spec.sectors.bytes(), now);
            }
        }
        if let Some(why) = runtime.overrun() {
            return why.to_string();
        }
        let Some(at) = runtime.next_at() else { break };
        now = at;
    }
    panic!("it does not fail")
}

fn on_device(script: &str, keys: &str, seconds: f64) -> Vec<SubmittedRequest> {
    let all = on_a_device(&program(script, keys), &together(), Nanos::from_secs(seconds));
    all.into_iter().map(|(submitted, _)| submitted).collect()
}

const CHASE: &str = "
local next = 0
function start() read(0, 4096, 7) end
function completion(tag, latency, error)
  if tag ~= 7 or latency ~= 0.001 or error then stop() end
  next = (next * 5 + 4096) % span
  read(next, 4096, 7)
end
";

#[test]
fn a_script_issues_at_completions_and_names_the_cause() {
    let all = on_device(CHASE, "region = \"1M\"", 0.0205);
    let mut expected = 0;
    assert_eq!(all.len(), 20);
    for (n, submitted) in all.iter().enumerate() {
        assert_eq!((submitted.at, submitted.spec.sector.0 * 512), (Nanos(n as i64 * 1_000_000), expected));
        assert_eq!(submitted.cause, n.checked_sub(1).map(|n| n as u64));
        expected = (expected * 5 + 4096) % (1 << 20);
    }
}

#[test]
fn every_function_issues_its_operation_in_its_own_region() {
    let script = "
      local whole = device('target')
      function start()
        read(512, 1024) write(4096, 4096) fua(0, 512) discard(8192, 4096) flush()
        whole.read(0, 512)
        if whole.span // 512 ~= 16 * 2097152 or instances ~= 2 then error('wrong') end
      end
      function completion() end";
    let all = on_device(script, "region = \"4G..6G\"\nown_region = true\ninstances = 2", 0.01);
    let seen: Vec<_> = all.iter().map(|a| (a.spec.op, a.spec.flags, a.spec.sector.0, a.spec.sectors.0)).collect();
    let mut expected = Vec::new();
    for first in [8 << 20, 10 << 20] {
        expected.extend([
            (Op::Read, Flags::NONE, first + 1, 2),
            (Op::Write, Flags::NONE, first + 8, 8),
            (Op::Write, Flags::FUA, first, 1),
            (Op::Discard, Flags::NONE, first + 16, 8),
            (Op::Flush, Flags::NONE, 0, 0),
            (Op::Read, Flags::NONE, 0, 1),
        ]);
    }
    assert_eq!(seen, expected);
}

#[test]
fn timers_come_in_time_with_their_tags_unless_cancelled() {
    let script = "
      local cancelled
      function start()
        wake_in(time('5ms'), 5) wake_at(0.002, 2)
        cancelled = wake_in(0.003, 3)
        wake_in(0.001, 1)
      end
      function timer(tag)
        if tag == 2 then cancel(cancelled) cancel(99) end
        if tag == 5 and now() ~= 0.005 then error('late') end
        read(tag * 4096, 4096)
      end";
    let all = on_device(script, "", 1.0);
    let seen: Vec<_> = all.iter().map(|a| (a.at.0 / 1_000_000, a.spec.sector.0 / 8)).collect();
    assert_eq!(seen, [(1, 1), (2, 2), (5, 5)]);
}

#[test]
fn more_requests_than_one_wake_can_take_follow_at_the_same_time() {
    let script = "
      function start() for n = 0, 99 do read(n * 4096, 4096) end end
      function completion() end";
    let all = on_device(script, "depth = 100", 0.1);
    let seen: Vec<_> = all.iter().map(|a| (a.at.0, a.spec.sector.0 / 8)).collect();
    assert_eq!(seen, (0..100).map(|n| (0, n)).collect::<Vec<_>>());
}

#[test]
fn streams_that_are_scripts_send_each_other_messages() {
    let text = r#"
name = "p"
about = "A test"
[set]
gap = "3ms"
[[stream]]
name = "ping"
instances = 3
code = '''
local pong, gap = stream("pong"), time(set.gap)
function start() send(pong, 10 + instance, gap) end
function message(value) read(value * 4096, 4096) end
'''
[[stream]]
name = "pong"
instances = 3
code = '''
local ping = stream("ping")
function start() end
function message(value) write(value * 4096, 4096) send(ping, value * 2) end
'''
"#;
    let program = Program::parse("p.toml", text).unwrap();
    let settings = Settings { set: vec![("gap".into(), "7ms".into())], ..together() };
    let all = on_a_device(&program, &settings, Nanos::from_secs(1.0));
    let mut seen: Vec<_> = all.iter().map(|(a, _)| (a.at.0, a.stream, a.spec.sector.0 / 8)).collect();
    seen.sort_unstable();
    let at = 7_000_000;
    assert_eq!(seen, [(at, 0, 20), (at, 0, 22), (at, 0, 24), (at, 1, 10), (at, 1, 11), (at, 1, 12)]);
    assert!(program.streams().iter().all(|stream| !stream.is_open));
}

const OPEN: &str = "
local gap, place = distribution('exponential mean=10ms'), positions('zipf exponent=1.1', 4096)
local sizes = { small = 4096, large = 16384, [3] = 1 }
function start() wake_in(gap()) end
function timer()
  local total = 0
  for _, size in pairs(sizes) do total = total * 3 + size end
  local length = random(2) == 0 and sizes.small or sizes.large
  if random() < 0.5 then write(place(), 4096) else read(random(total) * 4096, length) end
  wake_in(gap())
end
";

#[test]
fn an_open_script_is_a_load_that_depends_on_the_seed_alone() {
    let open = program(OPEN, "instances = 3");
    let info = &open.streams()[0];
    assert!(info.is_open && info.runs_ahead);
    let all = open_requests(&open, &together(), 20.0);
    assert!((all.len() as f64 - 6000.0).abs() < 5.0 * 6000_f64.sqrt(), "{}", all.len());
    assert_eq!(all, open_requests(&open, &together(), 20.0));
    assert_ne!(all, open_requests(&open, &Settings { seed: 2, ..together() }, 20.0));
    assert_eq!(open_requests(&open, &Settings { scale: 2, ..together() }, 5.0).len(), {
        open_requests(&program(OPEN, "instances = 6"), &together(), 5.0).len()
    });
    // Known since the first version: another machine, or another version of Lua, draws the same.
    let digest = all.iter().fold(0_u64, |sum, request| {
        let op = u64::from(request.op == Op::Write);
        let one = request.at.0 as u64 ^ request.sector.0 << 20 ^ request.sectors.0 << 8 ^ op;
        sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(one)
    });
    assert_eq!(digest, DIGEST);
}

const DIGEST: u64 = 8_774_931_943_548_085_170;

#[test]
fn a_stream_starts_and_ends_at_its_times() {
    let script = "function start() wake_in(0) end function timer() read(0, 4096) wake_in(0.01) end";
    let times = |keys| {
        let all = open_requests(&program(script, keys), &together(), 10.0);
        all.into_iter().map(|request| request.at.0 / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(times("start = \"50ms\"\nend = \"80ms\""), [50, 60, 70]);
    assert_eq!(times("ramp_up = \"10ms\"\ninstances = 2\nend = \"20ms\""), [0, 5, 10, 15]);
}

#[test]
fn an_invalid_script_is_refused_with_line_and_remedy() {
    let mut wrong = Vec::new();
    for (script, error) in [
        ("x = = 1\n", "p.toml:7: stream s: unexpected symbol near '='"),
        ("x = 1\nend", "p.toml:8: stream s: <eof> expected near 'end'"),
        ("x = 2 ^ 3", "p.toml:7: stream s: x ^ y has different last digits"),
        ("x = 1", "p.toml:7: the script has no handler of its start"),
        ("start = 1", "p.toml: stream s: `start` is the name of a handler, but it is a integer"),
        ("\nwirte(0, 512)", "p.toml:8: stream s: attempt to call a nil value (global 'wirte')"),
        ("os.exit()", "scripts do not have it, as they run in a sandbox"),
        ("\n\nread(0, 512)", "p.toml:9: stream s: read: only a handler can ask"),
        (
            "local x = distribution('expnential mean=1')",
            "p.toml:7: stream s: distribution: unknown distribution expnential; did you mean exponential?",
        ),
        ("local x = positions('zipf', 1000)", "use a multiple of 512"),
        ("local x = stream('t')", "p.toml:7: stream s: stream: no script has the name t"),
        ("local x = device('tarket')", "did you mean target?"),
        ("local x = time('20 cm')", "p.toml:7: stream s: time: `20 cm` is not a time"),
        ("while true do end", "p.toml:7: stream s: one event takes more than 1,000,000 operations"),
        ("local function f() return 1 + f() end f()", "too deeply"),
        ("local t = {} t[1] = t error(t)", "p.toml"),
        ("\u{1b}Lua", "p.toml:7: "),
    ] {
        let why = parse(script).unwrap_err();
        if !why.contains(error) {
            wrong.push(format!("{script}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let text = text("function start() end", "op = \"read\"");
    let why = Program::parse("p.toml", &text).unwrap_err();
    assert!(why.starts_with("p.toml:5: stream s, op: the script says when and where requests go"), "{why}");
    let why =
        Program::parse("p.toml", "name = \"p\"\nabout = \"a\"\n[[stream]]\nname = \"s\"\nscript = \"none.lua\"\n");
    assert!(why.unwrap_err().starts_with("p.toml:5: stream s, script: cannot read none.lua: "));
}

#[test]
fn a_failing_script_ends_the_program_with_line_and_remedy() {
    let mut wrong = Vec::new();
    let handler = |body: &str| format!("function start()\n{body}\nend\nfunction completion() end");
    for (body, error) in [
        (
            "read(100, 512)",
            "p.toml:8: stream s: read: the position is 100 bytes, which is not a multiple of 512; use for example 0",
        ),
        ("read(0, 0)", "read: the length is 0 bytes; use 512 or more"),
        ("read(-512, 512)", "are outside of the region"),
        ("read(span, 512)", "are outside of the region"),
        ("read(9223372036854775296, 9223372036854775296)", "are outside of the region"),
        ("read('x', 512)", "read: the position must be a whole number, but it is a string"),
        ("read(0.5, 512)", "read: the position must be a whole number, but it is 0.5; a // b divides without a rest"),
        ("read(0)", "read: the length must be a whole number, but it is missing"),
        ("read(0, 2097152)", "read: 2097152 bytes are more than `largest` of the stream, 1048576"),
        ("for n = 0, 99 do read(0, 512) end", "more than 64 requests, timers and messages of an instance are pending"),
        ("wake_in('20ms')", "wake_in: the time must be a number of seconds, but it is a string; time(\"20ms\")"),
        ("wake_in(-1)", "wake_in: -1 is no time"),
        ("wake_in(0/0)", "is no time"),
        ("wake_in(1)", "a timer was set, but the script has no `function timer(...)`; add it"),
        ("random(0)", "random(0): there is no whole number"),
        ("distribution('zipf')", "distribution: not while the program runs"),
        ("send('x', 1)", "send: name the receiver as stream"),
        ("error('out of pages')", "p.toml:8: stream s: out of pages"),
        ("local x = nil + 1", "p.toml:8: stream s: attempt to perform arithmetic on a nil value"),
        ("for k in pairs({ [{}] = 1 }) do end", "pairs: a key is a table, which has no order"),
        ("while true do end", "p.toml:8: stream s: one event takes more than 1,000,000 operations"),
        ("local s = 'x' while true do s = s .. s end", "needs more memory than a script may have"),
        ("local t = {} for n = 1, 1e9 do t[n] = n end", "one event takes more than 1,000,000 operations"),
        (
            "local t, s = {}, 'x' for n = 1, 12 do s = s .. s end for n = 1, 90000 do t[n] = s .. n end",
            "needs more memory than a script may have",
        ),
        ("local function f(x) return f(x) + 1 end f(1)", "too deeply"),
        ("table.concat({ {} })", "p.toml:8: stream s: invalid value (table) at index 1 in table for 'concat'"),
        ("table.unpack({}, 1, 1e8)", "p.toml:8: stream s: too many results to unpack"),
        ("cancel('x')", "cancel: the timer must be a whole number"),
        (
            "local t = {} for n = 1, 1000 do t[n] = n end table.sort(t, function() return true end) for n = 1, 9e9 do end",
            "one event takes more",
        ),
    ] {
        let why = failure(&handler(body));
        if !why.contains(error) || !why.starts_with("p.toml") {
            wrong.push(format!("{body}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let why = failure("function start() wake_in(0) end function timer() wake_in(0) end");
    assert!(why.contains("more than 10,000 timers and messages at the same time"), "{why}");
    let open = program("function start() wake_in(1) end\nfunction timer() read(0, 4096) error('no') end", "");
    let (runtime, _) = open.place(&together()).unwrap().open_part().unwrap();
    let mut load = crate::filament::open_load(runtime, Nanos::MAX, Metadata::new(Kind::Load, "test"));
    let why = load.next().unwrap_err().to_string();
    assert!(why.starts_with("the program ended early: p.toml:8: stream s: no"), "{why}");
}

#[test]
fn numbers_and_tables_have_the_same_results_everywhere() {
    let script = "
      local keys = {}
      for key in pairs({ b = 1, a = 2, [10] = 3, [2] = 4, [2.5] = 5, c = 6 }) do keys[#keys + 1] = tostring(key) end
      assert(table.concat(keys, ' ') == '2 2.5 10 a b c', table.concat(keys, ' '))
      local list = {}
      for n = 1, 100 do list[n] = { n * 37 % 10, n } end
      table.sort(list, function(a, b) return a[1] < b[1] end)
      for n = 2, 100 do
        local a, b = list[n - 1], list[n]
        assert(a[1] < b[1] or a[1] == b[1] and a[2] < b[2], 'equal values keep their order')
      end
      local few = { 3, 1, 2 }
      table.insert(few, 9) table.insert(few, 1, 8) table.sort(few)
      assert(table.concat(few, ' ') == '1 2 3 8 9' and table.remove(few, 1) == 1 and table.remove(few) == 9)
      assert(#few == 3 and table.concat(few, ' ') == '2 3 8' and tostring({}) == 'table')
      assert(math.pow(2, 0.5) == 1.4142135623730951 and math.exp(1) == EXP)
      assert(next == nil and load == nil and io == nil and os == nil and debug == nil and print == nil and _G == nil)
      assert(string == nil and pcall == nil and require == nil and setmetatable == nil and collectgarbage == nil)
      assert(math.random == nil and ('x').rep == nil)
      function start() end";
    // Without the library of texts, a text has no methods.
    let script = script.replace("EXP", &format!("{:?}", libm::exp(1.0)));
    let why = parse(&script).unwrap_err();
    assert!(why.contains("attempt to index a string value"), "{why}");
    parse(&script.replace(" and ('x').rep == nil", "")).unwrap();
}

#[test]
fn the_file_of_a_script_lies_beside_the_program() {
    let directory = std::env::temp_dir().join(format!("iosonar-script-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("p.toml");
    std::fs::write(directory.join("s.lua"), "function start() wake_in(1) end\nfunction timer() error('here') end\n")
        .unwrap();
    let text = "name = \"p\"\nabout = \"A test\"\n[[stream]]\nname = \"s\"\nscript = \"s.lua\"\n";
    let program = Program::parse(&path.display().to_string(), text).unwrap();
    // What was read is what runs, and what is recorded.
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(failure_of(&program).starts_with(&format!("{}:2: stream s: here", directory.join("s.lua").display())));
    assert!(
        program.text().ends_with(
            "# The script s.lua:\n# function start() wake_in(1) end\n# function timer() error('here') end\n"
        )
    );
    assert!(Program::parse("p.toml", &program.text().replace("script =", "#")).is_err());
}

/// Parts of Lua, to be put together at random.
const PARTS: [&str; 40] = [
    "function start()",
    "function timer(t)",
    "function completion(t, l)",
    "function message(v)",
    "end",
    "if",
    "then",
    "else",
    "while true do",
    "for i = 1, 10 do",
    "read(0, 4096)",
    "write(i, 512)",
    "wake_in(0.1)",
    "wake_in(0)",
    "flush()",
    "stop()",
    "local x = {}",
    "x = x .. x",
    "x[#x + 1] = x",
    "x.y.z = 1",
    "return",
    "return start()",
    "'text'",
    "[[",
    "]]",
    "--[[",
    "--",
    "(",
    ")",
    "=",
    "..",
    "goto a",
    "::a::",
    "0x7fffffffffffffff",
    "1e308 * 10",
    "local t = positions('zipf', 4096)",
    "random(-1)",
    "table.sort({3, 2, 1}, random)",
    "error({})",
    "send(nil, nil)",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever a script is, it is refused, fails, or runs; the program goes on.
    #[test]
    fn no_script_makes_the_program_panic(parts in prop::collection::vec(prop_oneof![
        8 => prop::sample::select(&PARTS[..]).prop_map(str::to_owned),
        1 => "[ -~\\n]{0,12}",
        1 => any::<String>(),
    ], 0..25)) {
        let script = format!("function start() wake_in(0.1) read(0, 512) end\n{}", parts.join(" ").replace("'''", ""));
        let source = super::Source { file: "f".into(), stream: "s".into(), first_line: 1, text: script.clone() };
        let _ = (source.check(), source.names().len());
        // Characters that TOML does not allow are refused before.
        let Ok(program) = parse(&script) else { return Ok(()) };
        let Ok(mut runtime) = program.place(&together()).and_then(Placement::runtime) else { return Ok(()) };
        let mut now = Nanos::ZERO;
        for _ in 0..50 {
            while let Some(submitted) = runtime.next_due(now) {
                if let Some(ticket) = submitted.ticket {
                    runtime.completed(ticket, iosonar_trace::Outcome::Error, 0, now);
                }
            }
            let Some(at) = runtime.next_at() else { break };
            now = at;
        }
        if let Some(why) = runtime.overrun() {
            prop_assert!(why.to_string().starts_with("p.toml"), "{}", why);
        }
    }
}
