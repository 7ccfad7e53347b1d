//! Every key of a program's text: the reader accepts these, and the JSON schema and the documentation list them.

use iosonar_trace::params::{Key, Takes};

const fn key(name: &'static str, takes: Takes, help: &'static str) -> Key {
    Key::new(name, takes, help)
}

/// The keys at the top of a program, outside of all tables.
pub static PROGRAM: &[Key] = &[
    key("name", Takes::Text, "Name of the program").required(),
    key("about", Takes::Text, "One sentence about it").required(),
    key(
        "set",
        Takes::Names,
        "Parameters with their defaults; `$NAME` in a text is the parameter's value, and --set NAME=VALUE changes it",
    ),
    key(
        "devices",
        Takes::NamesOrTables(DEVICE),
        "Devices: a size (10G), a share of the target (10%), or a table with `size` and `per_scale`; without it, one device `target` of 100%",
    ),
    key("stream", Takes::Tables(STREAM), "A stream: when requests come, where they go, and how large they are")
        .required(),
];

/// The keys of a device that is a table.
pub static DEVICE: &[Key] = &[
    key("size", Takes::Number, "Size (10G), or share of the target (10%)").required(),
    key("per_scale", Takes::Flag, "Whether --scale multiplies the size (default false)"),
];

/// The keys of a table `[[stream]]`.
pub static STREAM: &[Key] = &[
    key("name", Takes::Text, "Name of the stream").required(),
    key(
        "instances",
        Takes::Number,
        "Instances of the stream, each independent of the others (default 1); --scale multiplies them",
    ),
    key("per_scale", Takes::Flag, "Whether --scale multiplies the instances (default true)"),
    key(
        "arrivals",
        Takes::Text,
        "Open stream: when requests come, as in `iosonar generate`: poisson rate=500; the rate is that of each instance",
    ),
    key("closed", Takes::Flag, "Closed stream: each instance submits its next request when the last one has completed"),
    key(
        "depth",
        Takes::Number,
        "Most transactions of an instance at a time (default: 1 if closed, 1000 if open); of a script, requests, timers and messages (default 64)",
    ),
    key(
        "think",
        Takes::Text,
        "Closed stream: distribution of the time between a completion and the next request: exponential mean=10ms",
    ),
    key("rate_limit", Takes::Number, "Closed stream: most transactions per second of each instance"),
    key("after", Takes::Text, "Streams above it that must have ended before it begins; its times count from then"),
    key("start", Takes::Number, "Time at which the stream starts (default 0)"),
    key("ramp_up", Takes::Number, "Time over which the instances start, one after the other, evenly (default 0)"),
    key("end", Takes::Number, "Time from which it submits no more requests"),
    key(
        "requests",
        Takes::Number,
        "It ends after so many requests of each instance; a transaction that has begun is finished",
    ),
    key(
        "bytes",
        Takes::Number,
        "It ends after requests of so many bytes of each instance; a transaction that has begun is finished",
    ),
    key(
        "passes",
        Takes::Number,
        "It ends after so many requests of each instance as cover its region this often; of a load, how often it is repeated (default 1)",
    ),
    key(
        "op",
        Takes::Text,
        "The operation of all requests: read, write, flush, fua (write with forced unit access), or discard",
    ),
    key("mix", Takes::Text, "Operations with weights: read=70,write=30"),
    key(
        "flush_every",
        Takes::Number,
        "After so many writes of an instance it flushes their device, once the last of them has completed",
    ),
    key("sizes", Takes::Text, "Size, or sizes with weights: 4k:70,64k:30 (default 4k)"),
    key(
        "redraw_sizes",
        Takes::Flag,
        "Whether the position is drawn first, and then a size that fits before the end of the region, as in fio (default false: a position from which the size fits)",
    ),
    key(
        "positions",
        Takes::Text,
        "Positions, as in `iosonar generate`: zipf exponent=1.1; or `append`: each request starts where the last one of any instance ended (default uniform)",
    ),
    key("align", Takes::Number, "Positions are multiples of this (default 4k)"),
    key(
        "data",
        Takes::Text,
        "Data of its writes, unless the run says it: random, zero, pattern=HEX, or shares: compressible=60 dedupe=20 block=64k",
    ),
    key("device", Takes::Text, "Name of the device (default: the only one)"),
    key("region", Takes::Text, "Part of the device, in shares or bytes: 20%, 10%..30%, 4G..8G (default: all of it)"),
    key("own_region", Takes::Flag, "Whether each instance has its own, equal part of the region (default false)"),
    key(
        "script",
        Takes::Text,
        "A script in Lua, in a file beside this one: it says when and where requests go, instead of the keys for that",
    ),
    key("code", Takes::Text, "The same, as a text between '''"),
    key("largest", Takes::Number, "The largest request of a script (default 1M)"),
    key(
        "load",
        Takes::Text,
        "A load, in a file beside this one: the stream makes its requests at its times, whose zero is `start`",
    ),
    key("load_device", Takes::Text, "Device of the load whose requests are made (default: the only one)"),
    key("speedup", Takes::Number, "Factor by which a load is faster than recorded (default 1)"),
    key("step", Takes::Tables(STEP), "A step of a transaction; without steps, a transaction is one request"),
];

/// The keys of a step. Those that a stream also has take its value as their default.
pub static STEP: &[Key] = &[
    key("name", Takes::Text, "Name of the step"),
    key("op", Takes::Text, "The operation, as in the stream"),
    key("mix", Takes::Text, "Operations with weights, as in the stream"),
    key("sizes", Takes::Text, "Sizes, as in the stream"),
    key("redraw_sizes", Takes::Flag, "Whether sizes are drawn until they fit, as in the stream"),
    key("positions", Takes::Text, "Positions, as in the stream"),
    key("align", Takes::Number, "Alignment, as in the stream"),
    key("device", Takes::Text, "Name of the device, as in the stream"),
    key("region", Takes::Text, "Part of the device, as in the stream"),
    key("own_region", Takes::Flag, "Whether each instance has its own part of the region, as in the stream"),
    key(
        "same",
        Takes::Flag,
        "Whether the request has the device, position and length of the request before it in its transaction (default false)",
    ),
    key("repeat", Takes::Number, "Requests of this step (default 1)"),
    key(
        "weight",
        Takes::Number,
        "A transaction is one of the steps, drawn in proportion to their weights, instead of all of them in order",
    ),
    key(
        "wait",
        Takes::Flag,
        "Whether each request of the step waits until all requests before it in its transaction have completed (default true), or is issued at once",
    ),
];
