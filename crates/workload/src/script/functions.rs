//! The functions by which handlers ask for requests, timers and messages.

use std::sync::{Arc, Mutex};

use iosonar_trace::{Flags, Nanos, Op, SECTOR_BYTES, Sector, Sectors};
use mlua::{Error, Lua, Result, Table, Value};

use super::host::{Host, Order, Phase, seconds, whole};
use super::settings::lock;
use super::source::Source;
use crate::filament::FilamentId;

/// The functions that ask for requests: their names, operations and flags.
const REQUESTS: [(&str, Op, Flags); 4] = [
    ("read", Op::Read, Flags::NONE),
    ("write", Op::Write, Flags::NONE),
    ("fua", Op::Write, Flags::FUA),
    ("discard", Op::Discard, Flags::NONE),
];

/// Adds the functions for the area with this number. A script has those that its text names: so it is known before the run
/// whether it writes.
pub(super) fn install_requests(
    lua: &Lua,
    table: &Table,
    host: &Arc<Mutex<Host>>,
    source: &Source,
    area: u32,
) -> Result<()> {
    let named = source.names();
    for (name, op, flags) in REQUESTS.into_iter().filter(|(name, ..)| named.contains(name)) {
        let host = Arc::clone(host);
        let function = lua.create_function(move |_, (position, length, tag): (Value, Value, Value)| {
            let mut host = lock(&host);
            host.expect(Phase::Handling, name)?;
            let (sector, sectors) = place(&host, area, name, &position, &length)?;
            let tag = tag_of(&tag, name)?;
            if op != Op::Discard && sectors > host.settings.largest {
                return Err(Error::runtime(format!(
                    "{name}: {} bytes are more than `largest` of the stream, {}; set it, or use several requests",
                    sectors.bytes(),
                    host.settings.largest.bytes()
                )));
            }
            host.order(Order::Issue { op, flags, area, sector, sectors, tag }, true)
        });
        table.raw_set(name, function?)?;
    }
    let host = Arc::clone(host);
    let flush = lua.create_function(move |_, tag: Value| {
        let mut host = lock(&host);
        host.expect(Phase::Handling, "flush")?;
        let tag = tag_of(&tag, "flush")?;
        let (sector, sectors) = (Sector(0), Sectors(0));
        host.order(Order::Issue { op: Op::Flush, flags: Flags::NONE, area, sector, sectors, tag }, true)
    });
    table.raw_set("flush", flush?)
}

fn tag_of(value: &Value, name: &str) -> Result<i64> {
    if value.is_nil() { Ok(0) } else { whole(value, name, "the tag") }
}

/// The sectors of a request, inside the area.
fn place(host: &Host, area: u32, name: &str, position: &Value, length: &Value) -> Result<(Sector, Sectors)> {
    let (position, length) = (whole(position, name, "the position")?, whole(length, name, "the length")?);
    for (what, bytes) in [("position", position), ("length", length)] {
        if bytes % SECTOR_BYTES as i64 != 0 {
            let below = bytes.div_euclid(4096) * 4096;
            return Err(Error::runtime(format!(
                "{name}: the {what} is {bytes} bytes, which is not a multiple of 512; use for example {below}"
            )));
        }
    }
    let size = host.areas[area as usize].size;
    if length <= 0 {
        return Err(Error::runtime(format!("{name}: the length is {length} bytes; use 512 or more")));
    }
    let (first, sectors) = (position / 512, length / 512);
    if position < 0 || first.saturating_add(sectors) as u64 > size {
        return Err(Error::runtime(format!(
            "{name}: {length} bytes at {position} are outside of the region, which has {} bytes (span)",
            size * 512
        )));
    }
    Ok((Sector(first as u64), Sectors(sectors as u64)))
}

/// Adds the functions for timers and messages.
pub(super) fn install(lua: &Lua, table: &Table, host: &Arc<Mutex<Host>>) -> Result<()> {
    for (name, is_relative) in [("wake_in", true), ("wake_at", false)] {
        let host = Arc::clone(host);
        let function = lua.create_function(move |_, (time, tag): (Value, Value)| {
            let mut host = lock(&host);
            host.expect(Phase::Handling, name)?;
            let (time, tag) = (seconds(&time, name)?, tag_of(&tag, name)?);
            let at = if is_relative { host.now + time } else { time.max(host.now) };
            let state = host.state();
            state.timers += 1;
            let id = state.timers;
            host.order(Order::Timer { at, id, tag }, true)?;
            Ok(id)
        });
        table.raw_set(name, function?)?;
    }
    let cancelling = Arc::clone(host);
    let cancel = lua.create_function(move |_, timer: Value| {
        let mut host = lock(&cancelling);
        host.expect(Phase::Handling, "cancel")?;
        host.order(Order::Cancel { id: whole(&timer, "cancel", "the timer")? }, false)
    });
    table.raw_set("cancel", cancel?)?;
    let stopping = Arc::clone(host);
    let stop = lua.create_function(move |_, ()| {
        let mut host = lock(&stopping);
        host.expect(Phase::Handling, "stop")?;
        host.order(Order::Stop, false)
    });
    table.raw_set("stop", stop?)?;
    let sending = Arc::clone(host);
    let send = lua.create_function(move |_, (to, value, delay): (Value, Value, Value)| {
        let mut host = lock(&sending);
        host.expect(Phase::Handling, "send")?;
        let Value::LightUserData(to) = to else {
            return Err(Error::runtime(
                "send: name the receiver as stream(\"NAME\") outside of functions: local x = stream(\"NAME\"), then send(x, 1)",
            ));
        };
        let value = whole(&value, "send", "the message")?;
        let delay = if delay.is_nil() { Nanos::ZERO } else { seconds(&delay, "send")? };
        match receiver(to.0 as usize) {
            Some(to) => {
                let at = host.now + delay;
                host.order(Order::Send { to, at, value }, true)
            }
            // It is not part of the run.
            None => Ok(()),
        }
    });
    table.raw_set("send", send?)
}

/// A receiver as a value that scripts can only pass on: its number and 1, or 0 if it is not part of the run.
pub(super) fn handle(receiver: Option<FilamentId>) -> usize {
    receiver.map_or(0, |filament| filament.0 as usize + 1)
}

fn receiver(handle: usize) -> Option<FilamentId> {
    Some(FilamentId(u32::try_from(handle.checked_sub(1)?).ok()?))
}
