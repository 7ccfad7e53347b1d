//! What a script sees of its stream: the functions by which it asks, and what they need.

use std::collections::HashMap;

use iosonar_trace::params::Settings as Kind;
use iosonar_trace::{Flags, Nanos, Op, Sector, Sectors};
use mlua::{Error, Function, Result, Value};

use super::settings::{Area, Settings};
use crate::Rng;
use crate::distributions::Distribution;
use crate::filament::FilamentId;
use crate::positions::{Positions, Space};

/// The most an instance asks for at one event.
pub(super) const MAX_ORDERS: usize = 1000;

/// What a handler asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    Issue { op: Op, flags: Flags, area: u32, sector: Sector, sectors: Sectors, tag: i64 },
    Timer { at: Nanos, id: i64, tag: i64 },
    Cancel { id: i64 },
    Send { to: FilamentId, at: Nanos, value: i64 },
    Stop,
}

/// What a script does now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its text runs, before the run.
    Loading,
    /// A handler runs.
    Handling,
}

/// What belongs to one instance.
pub(super) struct State {
    /// Generators of distributions, of positions, and of `random`.
    pub rngs: [Rng; 3],
    /// By the number of their function; empty where this instance has none.
    pub positions: Vec<Option<Box<dyn Positions>>>,
    pub timers: i64,
}

impl State {
    pub fn new(rngs: [Rng; 3]) -> Self {
        Self { rngs, positions: Vec::new(), timers: 0 }
    }
}

/// A distribution that the script prepared, and the function that draws from it.
pub(super) struct Law {
    pub law: Box<dyn Distribution>,
    pub draw: Function,
}

/// Positions that the script prepared, and the function that draws from them.
pub(super) struct Places {
    pub kind: Kind,
    pub space: Space,
    pub length: Sectors,
    pub draw: Function,
}

/// What the functions of a stream's instances work on.
pub(super) struct Host {
    pub settings: Settings,
    /// The stream's own area, and those of devices.
    pub areas: Vec<Area>,
    pub phase: Phase,
    pub now: Nanos,
    /// The instance that runs.
    pub current: usize,
    pub instances: Vec<State>,
    /// Events that it may still ask for.
    pub room: u32,
    pub orders: Vec<Order>,
    pub laws: Vec<Law>,
    pub law_numbers: HashMap<String, usize>,
    pub places: Vec<Places>,
    pub place_numbers: HashMap<(String, i64), usize>,
}

impl Host {
    pub fn new(settings: Settings) -> Self {
        let areas = vec![settings.area].into_iter().chain(settings.devices.iter().map(|device| device.area)).collect();
        Self {
            settings,
            areas,
            phase: Phase::Loading,
            now: Nanos::ZERO,
            current: 0,
            instances: Vec::new(),
            room: 0,
            orders: Vec::new(),
            laws: Vec::new(),
            law_numbers: HashMap::new(),
            places: Vec::new(),
            place_numbers: HashMap::new(),
        }
    }

    pub fn begin_loading(&mut self, instance: usize) {
        (self.phase, self.current, self.now) = (Phase::Loading, instance, Nanos::ZERO);
    }

    pub fn begin_handling(&mut self, instance: usize, now: Nanos, room: u32) {
        (self.phase, self.current, self.now, self.room) = (Phase::Handling, instance, now, room);
        self.orders.clear();
    }

    pub fn state(&mut self) -> &mut State {
        &mut self.instances[self.current]
    }

    /// Refuses a function that only handlers can use, or only the text around them.
    pub fn expect(&self, phase: Phase, name: &str) -> Result<()> {
        if self.phase == phase {
            return Ok(());
        }
        Err(Error::runtime(match phase {
            Phase::Handling => format!("{name}: only a handler can ask for something; write it in `function start()`"),
            Phase::Loading => format!(
                "{name}: not while the program runs, as it takes too long; call it outside of functions and keep its result: local x = {name}(...)"
            ),
        }))
    }

    /// Adds an order. `waits` is whether an event follows.
    pub fn order(&mut self, order: Order, waits: bool) -> Result<()> {
        if self.orders.len() >= MAX_ORDERS {
            return Err(Error::runtime(format!(
                "one event asks for more than {MAX_ORDERS} things; ask for the rest at a timer or completion"
            )));
        }
        if waits {
            self.room = self.room.checked_sub(1).ok_or_else(|| {
                Error::runtime(format!(
                    "more than {} requests, timers and messages of an instance are pending; ask for fewer, or set `depth` of the stream",
                    self.settings.depth
                ))
            })?;
        }
        self.orders.push(order);
        Ok(())
    }
}

/// A whole number.
pub(super) fn whole(value: &Value, function: &str, what: &str) -> Result<i64> {
    let wrong = |found: String| {
        Err(Error::runtime(format!(
            "{function}: {what} must be a whole number, but it is {found}; a // b divides without a rest"
        )))
    };
    match value {
        Value::Integer(number) => Ok(*number),
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => Ok(*number as i64),
        Value::Number(number) => wrong(number.to_string()),
        Value::Nil => wrong("missing".into()),
        other => wrong(format!("a {}", other.type_name())),
    }
}

/// A time in seconds.
pub(super) fn seconds(value: &Value, function: &str) -> Result<Nanos> {
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        other => {
            let found = if other.is_nil() { "missing".into() } else { format!("a {}", other.type_name()) };
            return Err(Error::runtime(format!(
                "{function}: the time must be a number of seconds, but it is {found}; time(\"20ms\") outside of functions makes one"
            )));
        }
    };
    if !(0.0..9e9).contains(&number) {
        return Err(Error::runtime(format!("{function}: {number} is no time; use seconds of 0 or more")));
    }
    Ok(Nanos::from_secs(number))
}
