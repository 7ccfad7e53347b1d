use iosonar_trace::Reader;

use super::*;

const MS: i64 = 1_000_000;

fn read(tag: u32) -> RequestSpec {
    RequestSpec {
        op: Op::Read,
        flags: Flags::NONE,
        device: DeviceId(0),
        sector: Sector(u64::from(tag) * 8),
        sectors: Sectors(8),
        tag,
    }
}

/// Asks for a request every `every`.
struct Open {
    every: Nanos,
    left: u32,
}

impl Filament for Open {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        if let Event::Timer(_) = event {
            context.issue(read(self.left));
        }
        if self.left > 0 {
            self.left -= 1;
            context.timer(context.now() + self.every);
        }
    }
}

/// Asks for the next request when the last one has completed.
struct Closed {
    left: u32,
}

impl Filament for Closed {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        assert!(matches!(event, Event::Start | Event::Completed(_)));
        if self.left > 0 {
            self.left -= 1;
            context.issue_and_wait(read(self.left));
        }
    }
}

/// A device with a queue: each request takes 1 ms. Returns each request with its completion.
fn on_a_device(mut runtime: Runtime) -> Vec<(SubmittedRequest, Nanos)> {
    let (mut now, mut free, mut queue, mut all) = (Nanos::ZERO, Nanos::ZERO, Vec::new(), Vec::new());
    while !(runtime.is_done() && queue.is_empty()) {
        while let Some(submitted) = runtime.next_due(now) {
            free = free.max(now) + Nanos(MS);
            queue.push((free, submitted));
        }
        queue.sort_by_key(|(at, _)| *at);
        let next = queue.first().map(|(at, _)| *at).into_iter().chain(runtime.next_at()).min();
        now = next.expect("something happens");
        if queue.first().is_some_and(|(at, _)| *at <= now) {
            let (at, submitted) = queue.remove(0);
            all.push((submitted, at));
            if let Some(ticket) = submitted.ticket {
                runtime.completed(ticket, Outcome::Ok, 4096, now);
            }
        }
    }
    assert_eq!(runtime.overrun(), None);
    all
}

#[test]
fn open_filaments_keep_their_times_and_closed_ones_wait() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Open { every: Nanos(MS / 2), left: 100 }), 0, Nanos::ZERO);
    // Twice as many as the device can serve: the delay grows.
    let open = on_a_device(runtime);
    assert_eq!(open.len(), 100);
    for (n, (submitted, completed)) in open.iter().enumerate() {
        let n = n as i64 + 1;
        assert_eq!((submitted.at, submitted.cause), (Nanos(n * MS / 2), None));
        assert_eq!(*completed, Nanos(MS / 2 + n * MS));
    }
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Closed { left: 100 }), 1, Nanos(MS));
    for (n, (submitted, completed)) in on_a_device(runtime).iter().enumerate() {
        assert_eq!(submitted.at, Nanos((n as i64 + 1) * MS));
        assert_eq!((submitted.request, submitted.cause), (n as u64, (n as u64).checked_sub(1)));
        assert_eq!(*completed - submitted.at, Nanos(MS), "no delay");
    }
}

/// Passes a message on after 1 ms, and sets a timer that it cancels at the message.
struct Relay {
    next: FilamentId,
    timer: Option<TimerId>,
}

impl Filament for Relay {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        match event {
            Event::Start => self.timer = context.timer(Nanos(1_000 * MS)),
            Event::Message { from, value } => {
                assert_ne!(from, context.me());
                assert!(context.cancel(self.timer.take().expect("set at the start")));
                context.issue(read(value as u32));
                context.send(self.next, context.now() + Nanos(MS), value + 1);
                context.end();
            }
            Event::Timer(_) | Event::Completed(_) => unreachable!("cancelled"),
        }
    }
}

struct Starter;

impl Filament for Starter {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        match event {
            Event::Start => context.send(FilamentId(1), Nanos(5 * MS), 7),
            Event::Message { value, .. } => context.issue(read(value as u32)),
            Event::Timer(_) | Event::Completed(_) => unreachable!(),
        }
    }
}

#[test]
fn messages_arrive_at_their_times_and_timers_can_be_cancelled() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Starter), 0, Nanos::ZERO);
    for next in [2, 3, 0] {
        runtime.add(Box::new(Relay { next: FilamentId(next), timer: None }), 0, Nanos::ZERO);
    }
    let submitted: Vec<_> =
        on_a_device(runtime).iter().map(|(submitted, _)| (submitted.at.0 / MS, submitted.spec.tag)).collect();
    assert_eq!(submitted, [(5, 7), (6, 8), (7, 9), (8, 10)]);
}

/// Does what a filament must not do.
struct Wrong(u8);

impl Filament for Wrong {
    fn wake(&mut self, _: Event, context: &mut FilamentContext<'_>) {
        match self.0 {
            0 => (0..9).for_each(|tag| context.issue(read(tag))),
            1 => (0..3).for_each(|tag| context.issue_and_wait(read(tag))),
            2 => context.send(FilamentId(0), Nanos(-1), 0),
            _ => context.send(FilamentId(1), Nanos(MS), 0),
        }
    }
}

#[test]
fn a_filament_that_asks_for_too_much_ends_the_program() {
    let me = FilamentId(0);
    let expected =
        [Overrun::Events(me), Overrun::Pending(me), Overrun::Past(me, Nanos(-1)), Overrun::Unknown(me, FilamentId(1))];
    for (what, expected) in expected.into_iter().enumerate() {
        let mut runtime = Runtime::default();
        runtime.add(Box::new(Wrong(what as u8)), 0, Nanos::ZERO);
        while runtime.next_due(Nanos::ZERO).is_some() {}
        assert_eq!(runtime.overrun(), Some(expected.clone()));
        assert!(runtime.is_done() && !expected.to_string().is_empty());
    }
}

#[test]
fn the_open_part_of_a_program_is_a_load() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Closed { left: 5 }), 0, Nanos::ZERO);
    runtime.add(Box::new(Open { every: Nanos(3 * MS), left: 100 }), 1, Nanos::ZERO);
    let mut load = open_load(runtime, Nanos(30 * MS), iosonar_trace::Metadata::new(iosonar_trace::Kind::Load, "test"));
    let mut times = Vec::new();
    while let Some(request) = load.next().unwrap() {
        times.push(request.at.0 / MS);
    }
    assert_eq!(times, [3, 6, 9, 12, 15, 18, 21, 24, 27], "before the end");
    assert_eq!((load.left_out(), load.metadata().counts.requests), (1, 9));
}

/// Two filaments that wake each other at the same time for ever.
struct Busy;

impl Filament for Busy {
    fn wake(&mut self, _: Event, context: &mut FilamentContext<'_>) {
        context.send(FilamentId(1 - context.me().0), context.now(), 0);
    }
}

#[test]
fn filaments_that_never_stop_do_not_stop_the_loop() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Busy), 0, Nanos::ZERO);
    runtime.add(Box::new(Busy), 0, Nanos::ZERO);
    assert_eq!(runtime.next_due(Nanos::ZERO), None, "it returns");
    assert_eq!(runtime.next_at(), Some(Nanos::ZERO));
}
