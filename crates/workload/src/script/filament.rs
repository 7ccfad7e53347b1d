//! An instance of a script: calls its handlers at events, and passes on what they ask for.

use std::collections::VecDeque;
use std::sync::Arc;

use iosonar_trace::{Nanos, Outcome};
use mlua::{Error, Function, Result};

use super::compiled::Script;
use super::errors;
use super::handlers::Handlers;
use super::host::Order;
use super::settings::{Times, lock};
use crate::Rng;
use crate::filament::{Event, Filament, FilamentContext, MAX_EVENTS, RequestSpec, Runtime, TimerId};

/// Timers and messages of one instance at the same time.
const MAX_AT_ONE_TIME: u32 = 10_000;

/// A request that has not completed.
#[derive(Clone, Copy)]
struct Pending {
    tag: i64,
    submitted: Nanos,
}

/// An instance of a script.
struct ScriptFilament {
    script: Arc<Script>,
    number: u32,
    handlers: Handlers,
    end: Nanos,
    requests: Vec<Pending>,
    free: Vec<u32>,
    timers: Vec<(TimerId, i64, i64)>,
    /// What one wake had no room for.
    queued: VecDeque<Order>,
    /// Wakes it for the rest.
    continues: Option<TimerId>,
    /// Timers and messages since the time last changed.
    at_this_time: (Nanos, u32),
}

impl ScriptFilament {
    fn new(script: Arc<Script>, number: u32, handlers: Handlers, end: Nanos) -> Self {
        let at_this_time = (Nanos::ZERO, 0);
        let (requests, free, timers, queued) = Default::default();
        Self { script, number, handlers, end, requests, free, timers, queued, continues: None, at_this_time }
    }

    /// Calls the handler of an event, if there is one.
    fn handle(&mut self, event: Event, room: u32, now: Nanos) -> Result<()> {
        let handler = |handler: &Option<Function>, name: &str, what: &str| {
            let missing = || Error::runtime(format!("{what}, but the script has no `function {name}(...)`; add it"));
            handler.clone().ok_or_else(missing)
        };
        let sandbox = &self.script.sandbox;
        sandbox.begin();
        lock(&self.script.host).begin_handling(self.number as usize, now, room);
        match event {
            Event::Start => handler(&self.handlers.start, "start", "it starts")?.call(()),
            Event::Timer(timer) => {
                let Some(at) = self.timers.iter().position(|(id, ..)| *id == timer) else { return Ok(()) };
                let (.., tag) = self.timers.swap_remove(at);
                handler(&self.handlers.timer, "timer", "a timer was set")?.call(tag)
            }
            Event::Completed(completed) => {
                let Some(Pending { tag, submitted }) = self.requests.get(completed.tag as usize).copied() else {
                    return Ok(());
                };
                self.free.push(completed.tag);
                let error = (completed.outcome != Outcome::Ok).then(|| completed.outcome.name());
                let handler = handler(&self.handlers.completion, "completion", "a request has completed")?;
                handler.call((tag, (now - submitted).as_secs(), error))
            }
            Event::Message { value, .. } => {
                handler(&self.handlers.message, "message", "it got a message")?.call(value as i64)
            }
        }
    }

    /// Asks for what is queued, as far as one wake can.
    fn pass_on(&mut self, context: &mut FilamentContext<'_>) {
        for _ in 1..MAX_EVENTS {
            let Some(order) = self.queued.pop_front() else { return };
            self.submit(order, context);
        }
        if !self.queued.is_empty() {
            self.continues = context.timer(context.now());
        }
    }

    fn submit(&mut self, order: Order, context: &mut FilamentContext<'_>) {
        match order {
            Order::Issue { op, flags, area, sector, sectors, tag } => {
                let area = lock(&self.script.host).areas[area as usize];
                let first = area.first + area.stride * u64::from(self.number);
                let sector = if sectors.0 == 0 { sector } else { sector + iosonar_trace::Sectors(first) };
                let mut spec = RequestSpec { op, flags, device: area.device, sector, sectors, tag: 0 };
                if self.handlers.completion.is_none() {
                    return context.issue(spec);
                }
                let pending = Pending { tag, submitted: context.now() };
                spec.tag = self.free.pop().unwrap_or(self.requests.len() as u32);
                match self.requests.get_mut(spec.tag as usize) {
                    Some(entry) => *entry = pending,
                    None => self.requests.push(pending),
                }
                context.issue_and_wait(spec);
            }
            Order::Timer { at, id, tag } => {
                if let Some(timer) = context.timer(at) {
                    self.timers.push((timer, id, tag));
                }
            }
            Order::Cancel { id } => {
                if let Some(at) = self.timers.iter().position(|(_, own, _)| *own == id) {
                    context.cancel(self.timers.swap_remove(at).0);
                }
            }
            Order::Send { to, at, value } => context.send(to, at, value as u64),
            Order::Stop => context.end(),
        }
    }

    /// Refuses events that follow each other without any time between them, forever.
    fn check_progress(&mut self, event: Event, now: Nanos) -> std::result::Result<(), String> {
        if self.at_this_time.0 != now {
            self.at_this_time = (now, 0);
        }
        self.at_this_time.1 += u32::from(!matches!(event, Event::Completed(_)));
        if self.at_this_time.1 <= MAX_AT_ONE_TIME {
            return Ok(());
        }
        let source = &self.script.source;
        Err(format!(
            "{}: stream {}: more than {} timers and messages at the same time, {} s: wake it at later times, as with wake_in(0.001)",
            source.file,
            source.stream,
            iosonar_trace::human::count(u64::from(MAX_AT_ONE_TIME)),
            now.as_secs()
        ))
    }
}

impl Filament for ScriptFilament {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        let now = context.now();
        if now >= self.end {
            return context.end();
        }
        if matches!(event, Event::Timer(timer) if self.continues == Some(timer)) {
            self.continues = None;
            return self.pass_on(context);
        }
        if let Err(why) = self.check_progress(event, now) {
            return context.fail(why);
        }
        let script = Arc::clone(&self.script);
        let _turn = lock(&script.turn);
        // One for the timer of what has no room in this wake; those that are queued take theirs.
        let queued = self.queued.len() as u32 + u32::from(self.continues.is_none());
        if let Err(error) = self.handle(event, context.room().saturating_sub(queued), now) {
            return context.fail(errors::text_of(&error, &script.source, &script.names));
        }
        self.queued.extend(lock(&script.host).orders.drain(..));
        if self.continues.is_none() {
            self.pass_on(context);
        }
    }

    fn max_pending(&self) -> u32 {
        self.script.depth + 1
    }
}

/// Adds the instances of a script to a runtime, each with its start and its generators.
///
/// # Errors
/// If the text fails for an instance.
pub fn add_to(
    script: Script,
    runtime: &mut Runtime,
    times: Times,
    instances: impl Iterator<Item = (Nanos, [Rng; 3])>,
) -> std::result::Result<(), String> {
    let script = Arc::new(script);
    for (number, (start, rngs)) in instances.enumerate() {
        let handlers = script.load(number as u32, rngs)?;
        let filament = ScriptFilament::new(Arc::clone(&script), number as u32, handlers, times.end);
        runtime.add(Box::new(filament), times.stream, start);
    }
    Ok(())
}
