//! Adds all functions and constants of a stream to its sandbox.

use std::sync::{Arc, Mutex};

use mlua::{Error, Function, Result, Table, Value};
use rand::RngExt;

use super::errors::Names;
use super::host::{Host, whole};
use super::sandbox::Sandbox;
use super::settings::lock;
use super::source::Source;
use super::{functions, prepare};

/// Adds the functions and constants of a stream. Returns all names that a script can use.
pub(super) fn install(sandbox: &Sandbox, host: &Arc<Mutex<Host>>, source: &Source) -> Result<Names> {
    let (lua, shared) = (&sandbox.lua, &sandbox.shared);
    let settings = lock(host).settings.clone();
    shared.raw_set("span", settings.area.size * 512)?;
    shared.raw_set("instances", settings.instances)?;
    let set = lua.create_table()?;
    for (name, text) in &settings.set {
        let number = text.parse().map(Value::Integer).or_else(|_| text.parse().map(Value::Number));
        let value = number.map_or_else(|_| lua.create_string(text).map(Value::String), Ok)?;
        set.raw_set(name.as_str(), value)?;
    }
    shared.raw_set("set", set)?;
    prepare::install(sandbox, host, source)?;
    functions::install(lua, shared, host)?;
    functions::install_requests(lua, shared, host, source, 0)?;
    let now = Arc::clone(host);
    shared.raw_set("now", lua.create_function(move |_, ()| Ok(lock(&now).now.as_secs()))?)?;
    shared.raw_set("random", random_function(sandbox, host)?)?;
    names_of(shared)
}

/// `random()` is a number from 0 up to 1, `random(n)` a whole number from 0 up to n - 1.
fn random_function(sandbox: &Sandbox, host: &Arc<Mutex<Host>>) -> Result<Function> {
    let host = Arc::clone(host);
    sandbox.lua.create_function(move |_, below: Value| {
        let mut host = lock(&host);
        let [.., rng] = &mut host.state().rngs;
        if below.is_nil() {
            return Ok(Value::Number(rng.random::<f64>()));
        }
        let below = whole(&below, "random", "the number of values")?;
        if below < 1 {
            return Err(Error::runtime(format!(
                "random({below}): there is no whole number from 0 to {below} - 1; use 1 or more"
            )));
        }
        Ok(Value::Integer(rng.random_range(0..below)))
    })
}

fn names_of(shared: &Table) -> Result<Names> {
    let all = shared.pairs::<String, Value>().map(|pair| pair.map(|(name, _)| name));
    let mut names = all.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
