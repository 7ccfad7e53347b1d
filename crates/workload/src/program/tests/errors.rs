//! What is refused, and how errors say it.

use super::*;

/// The error of a text with this line in its stream.
fn refused(text: &str) -> String {
    Program::parse("p.toml", text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn errors_name_the_file_the_line_and_the_key_and_say_what_to_do() {
    let head = "name = \"p\"\nabout = \"A test\"\n";
    let stream = format!("{head}[[stream]]\nname = \"s\"\narrivals = \"poisson\"\nop = \"read\"\n");
    for (text, expected) in [
        (format!("{head}streams = 5\n"), "p.toml:3: streams: unknown key; did you mean stream?"),
        (head.to_owned(), "p.toml:1: stream: the program has no stream; add [[stream]]"),
        ("about = \"x\"\n".to_owned(), "p.toml:1: name: missing"),
        (format!("{head}stream = 5\n"), "p.toml:3: stream: expected tables; write [[stream]]"),
        (format!("{stream}arivals = 5\n"), "p.toml:7: stream 1, arivals: unknown key; did you mean arrivals?"),
        (
            format!("{stream}closed = true\n"),
            "p.toml:7: stream s, closed: a stream is open (arrivals) or closed, not both",
        ),
        (stream.replace("arrivals = \"poisson\"", ""), "p.toml:3: stream s, arrivals: missing: say when"),
        (
            stream.replace("poisson", "poison"),
            "p.toml:5: stream s, arrivals: unknown arrivals poison; did you mean poisson?",
        ),
        (stream.replace("poisson", "poisson rat=5"), "did you mean rate?"),
        (
            stream.replace("\"read\"", "\"raed\""),
            "p.toml:6: stream s, op: unknown operation `raed`; did you mean read?",
        ),
        (stream.replace("op = \"read\"", ""), "stream s, op: missing: set op = \"read\""),
        (format!("{stream}mix = \"read=1\"\n"), "p.toml:7: stream s, mix: set `op` or `mix`, not both"),
        (format!("{stream}sizes = \"big\"\n"), "p.toml:7: stream s, sizes: `big` is not a length"),
        (format!("{stream}sizes = [4]\n"), "p.toml:7: stream s, sizes: expected a text or a number, found array"),
        (format!("{stream}region = \"50%..20%\"\n"), "p.toml:7: stream s, region: it is empty"),
        (format!("{stream}region = \"9999T\"\n"), "use a smaller region"),
        (
            format!("{stream}sizes = \"64k\"\nregion = \"4k\"\n"),
            "p.toml:7: stream s, sizes: requests of 64 KiB are larger than",
        ),
        (format!("{stream}device = \"tagret\"\n"), "unknown device tagret; did you mean target?"),
        (format!("{stream}think = \"constant value=1\"\n"), "p.toml:7: stream s, think: only a closed stream has it"),
        (format!("{stream}instances = 0\n"), "p.toml:7: stream s, instances: it is 0"),
        (format!("{stream}instances = \"2G\"\n"), "use fewer instances"),
        (format!("{stream}depth = 2\n"), "p.toml:7: stream s, depth: no request of this stream waits"),
        (format!("{stream}start = 5\nend = \"5s\"\n"), "p.toml:8: stream s, end: the stream ends before it starts"),
        (format!("{stream}start = \"$x\"\n"), "p.toml:7: stream s, start: unknown parameter $x"),
        (
            format!("{stream}[[stream.step]]\nsame = true\n"),
            "p.toml:8: stream s, step 1, same: the first step has no request before it",
        ),
        (
            format!("{stream}[[stream.step]]\n[[stream.step]]\nsame = true\nsizes = \"4k\"\n"),
            "p.toml:10: stream s, step 2, sizes: the step has the place",
        ),
        (format!("{stream}[[stream.step]]\nthink = 5\n"), "p.toml:8: stream s, step 1, think: unknown key"),
        (format!("{stream}{}", &stream[head.len()..]), "p.toml:8: stream 2, name: another stream has the name s"),
        (format!("{stream}[devices]\na = \"0%\"\n"), "p.toml:8: devices, a: the share is 0%"),
        (format!("{stream}[devices]\na = \"60%\"\nb = \"60%\"\n"), "devices: device b ends at sector"),
        (
            format!("{stream}[devices]\na = {{ szie = \"1G\" }}\n"),
            "p.toml:8: devices, a, szie: unknown key; did you mean size?",
        ),
        (
            format!("{stream}[devices]\na = \"50%\"\nb = \"50%\"\n"),
            "p.toml:3: stream s, device: missing: the program has several devices",
        ),
        ("name = \n".to_owned(), "p.toml:1: "),
    ] {
        let why = refused(&text);
        assert!(why.contains(expected), "expected: {expected}\nfound: {why}");
    }
}

#[test]
fn more_instances_than_memory_are_refused_before_they_are_made() {
    for keys in ["instances = \"1G\"", "depth = \"1G\"", "instances = \"30k\"\ndepth = \"30k\""] {
        let text = format!("[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\n{keys}\n");
        let why = program(&text).place(&together()).unwrap().runtime().err().expect("it is refused");
        assert!(why.contains("p.toml:") && why.contains("of memory, and") && why.contains("smaller scale"), "{why}");
    }
}

#[test]
fn a_parameter_cannot_name_another_one() {
    let why = refused("name = \"p\"\nabout = \"x\"\n[set]\na = \"$b\"\nb = 1\n");
    assert!(why.contains("p.toml:4: set, a: the value of a parameter cannot name another one"), "{why}");
}

#[test]
fn weights_of_some_steps_alone_are_refused() {
    let refused = |steps: &str| {
        let text =
            format!("name = \"p\"\nabout = \"A\"\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\n{steps}");
        Program::parse("p.toml", &text).unwrap_err()
    };
    let why = refused("[[stream.step]]\nweight = 1\n[[stream.step]]");
    assert!(why.starts_with("p.toml:9: stream s, step 2, weight: missing"), "{why}");
    let why = refused("[[stream.step]]\nweight = 1\nrepeat = 2");
    assert!(why.starts_with("p.toml:9: stream s, step 1, repeat: a step with a weight"), "{why}");
    let why = refused("[[stream.step]]\nweight = 0");
    assert!(why.contains("step 1, weight"), "{why}");
}

#[test]
fn an_order_that_no_run_can_keep_is_refused() {
    let refused =
        |streams: &str| Program::parse("p.toml", &format!("name = \"p\"\nabout = \"A\"\n{streams}")).unwrap_err();
    let endless = "[[stream]]\nname = \"a\"\nclosed = true\nop = \"read\"\n";
    let after = "[[stream]]\nname = \"b\"\nclosed = true\nop = \"read\"\nafter = \"a\"\n";
    assert!(refused(&format!("{endless}{after}")).starts_with("p.toml:11: stream b, after: stream a never ends"));
    assert!(refused(&format!("{after}{endless}")).contains("no stream above this one has the name a; there is none"));
}
