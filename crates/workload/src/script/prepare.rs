//! The functions by which the text of a script prepares what its handlers use.

use std::sync::{Arc, Mutex};

use iosonar_trace::params::{did_you_mean, parse_bytes, parse_duration, parse_positive};
use iosonar_trace::{SECTOR_BYTES, Sectors};
use mlua::{Error, Function, LightUserData, Lua, Result, Table, Value};

use super::functions::{handle, install_requests};
use super::host::{Host, Law, Phase, Places, whole};
use super::sandbox::Sandbox;
use super::settings::lock;
use super::source::Source;
use crate::filament::FilamentId;
use crate::positions::Space;
use crate::{distributions, positions};

/// Adds the functions.
pub(super) fn install(sandbox: &Sandbox, host: &Arc<Mutex<Host>>, source: &Source) -> Result<()> {
    let (lua, shared) = (&sandbox.lua, &sandbox.shared);
    for (name, parse) in [
        ("time", (|text| parse_duration(text).map(|time| time.as_secs())) as fn(&str) -> _),
        ("number", parse_positive),
    ] {
        shared.raw_set(
            name,
            lua.create_function(move |_, value: Value| parsed(&value, name, parse).map(Value::Number))?,
        )?;
    }
    let bytes = |_: &Lua, value: Value| match &value {
        Value::String(_) => parsed(&value, "bytes", |text| parse_bytes(text).map(|bytes| bytes as i64)),
        other => whole(other, "bytes", "the size"),
    };
    shared.raw_set("bytes", lua.create_function(bytes)?)?;
    let own = Arc::clone(host);
    shared.raw_set("distribution", lua.create_function(move |lua, text: Value| distribution(lua, &own, &text))?)?;
    let own = Arc::clone(host);
    let places = move |lua: &Lua, (text, length): (Value, Value)| places(lua, &own, &text, &length);
    shared.raw_set("positions", lua.create_function(places)?)?;
    let own = Arc::clone(host);
    let stream = move |_: &Lua, (name, number): (Value, Value)| stream(&own, &name, &number);
    shared.raw_set("stream", lua.create_function(stream)?)?;
    // Each device has the functions that the stream has for its own.
    let devices = lua.create_table()?;
    let named = lock(host).settings.devices.clone();
    for (number, device) in named.iter().enumerate() {
        let table = lua.create_table()?;
        install_requests(lua, &table, host, source, number as u32 + 1)?;
        table.raw_set("span", device.area.size * SECTOR_BYTES)?;
        devices.raw_set(device.name.as_str(), table)?;
    }
    let known: Vec<String> = named.into_iter().map(|device| device.name).collect();
    let device = move |_: &Lua, name: String| {
        let found: Option<Table> = devices.raw_get(name.as_str())?;
        found.ok_or_else(|| {
            let near = did_you_mean(&name, known.iter().map(String::as_str));
            Error::runtime(format!("device: unknown device {name}; {near}"))
        })
    };
    shared.raw_set("device", lua.create_function(device)?)
}

fn text_of(value: &Value, name: &str, example: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        _ => Err(Error::runtime(format!("{name}: expected a text, for example {name}(\"{example}\")"))),
    }
}

/// A text with a unit, or a number as it is.
fn parsed<T: FromNumber>(
    value: &Value,
    name: &str,
    parse: impl Fn(&str) -> std::result::Result<T, String>,
) -> Result<T> {
    let text = match value {
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        other => text_of(other, name, T::EXAMPLE)?,
    };
    parse(&text).map_err(|why| Error::runtime(format!("{name}: {why}")))
}

/// What [`parsed`] returns.
trait FromNumber {
    const EXAMPLE: &str;
}

impl FromNumber for f64 {
    const EXAMPLE: &str = "20ms";
}

impl FromNumber for i64 {
    const EXAMPLE: &str = "64k";
}

/// `distribution("exponential mean=50ms")`: a function that draws from it.
fn distribution(lua: &Lua, shared: &Arc<Mutex<Host>>, text: &Value) -> Result<Function> {
    let text = text_of(text, "distribution", "exponential mean=50ms")?;
    let mut host = lock(shared);
    host.expect(Phase::Loading, "distribution")?;
    if let Some(number) = host.law_numbers.get(&text) {
        return Ok(host.laws[*number].draw.clone());
    }
    let law = distributions::parse(&text).and_then(|kind| distributions::build(&kind));
    let law = law.map_err(|why| Error::runtime(format!("distribution: {why}")))?;
    let (number, own) = (host.laws.len(), Arc::clone(shared));
    let draw = lua.create_function(move |_, ()| {
        let mut host = lock(&own);
        let Host { laws, instances, current, .. } = &mut *host;
        Ok(laws[number].law.draw(&mut instances[*current].rngs[0]))
    })?;
    host.laws.push(Law { law, draw: draw.clone() });
    host.law_numbers.insert(text, number);
    Ok(draw)
}

/// `positions("zipf exponent=1.1", 4096)`: a function that draws positions of requests of this length.
fn places(lua: &Lua, shared: &Arc<Mutex<Host>>, text: &Value, length: &Value) -> Result<Function> {
    const FORM: &str = "positions(\"zipf\", bytes(\"8k\"))";
    let text = text_of(text, "positions", "zipf")?;
    let bytes = whole(length, "positions", &format!("the length of requests, as in {FORM},"))?;
    if bytes < 512 || bytes % 512 != 0 {
        return Err(Error::runtime(format!("positions: the length is {bytes} bytes; use a multiple of 512")));
    }
    let mut host = lock(shared);
    host.expect(Phase::Loading, "positions")?;
    let refused = |why| Error::runtime(format!("positions: {why}"));
    let number = match host.place_numbers.get(&(text.clone(), bytes)) {
        Some(number) => *number,
        None => {
            let kind = positions::parse(&text).map_err(refused)?;
            let length = Sectors(bytes as u64 / SECTOR_BYTES);
            let space = Space::new(Sectors(host.settings.area.size), Sectors(8), length).map_err(refused)?;
            let (number, own) = (host.places.len(), Arc::clone(shared));
            let draw = lua.create_function(move |_, ()| {
                let mut host = lock(&own);
                let Host { places, instances, current, .. } = &mut *host;
                let state = &mut instances[*current];
                let drawn =
                    state.positions[number].as_mut().map(|own| own.next(places[number].length, &mut state.rngs[1]));
                Ok(drawn.map(|sector| sector.0 * SECTOR_BYTES))
            })?;
            host.places.push(Places { kind, space, length, draw });
            host.place_numbers.insert((text, bytes), number);
            number
        }
    };
    let (seed, Places { kind, space, draw, .. }) = (host.settings.seed, &host.places[number]);
    let (own, draw) = (positions::build(kind, *space, seed).map_err(refused)?, draw.clone());
    let all = &mut host.state().positions;
    all.resize_with(all.len().max(number + 1), || None);
    all[number] = Some(own);
    Ok(draw)
}

/// `stream("compaction")`: the instance of that stream with this one's number, or `stream("compaction", 0)`.
fn stream(shared: &Arc<Mutex<Host>>, name: &Value, number: &Value) -> Result<LightUserData> {
    let name = text_of(name, "stream", "log")?;
    let host = lock(shared);
    host.expect(Phase::Loading, "stream")?;
    let streams = &host.settings.streams;
    let Some(receiver) = streams.get(&name) else {
        let near = did_you_mean(&name, streams.keys().map(String::as_str));
        return Err(Error::runtime(format!("stream: no script has the name {name}; {near}")));
    };
    let number = if number.is_nil() {
        host.current as i64 % i64::from(receiver.instances)
    } else {
        whole(number, "stream", "the instance")?
    };
    let number = u32::try_from(number).ok().filter(|number| *number < receiver.instances).ok_or_else(|| {
        Error::runtime(format!("stream: {name} has {} instances, from 0; it has no {number}", receiver.instances))
    })?;
    Ok(LightUserData(handle(receiver.first.map(|first| FilamentId(first.0 + number))) as *mut _))
}
