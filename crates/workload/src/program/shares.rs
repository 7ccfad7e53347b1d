//! Deals the instances of streams to several loops.
//!
//! An instance that neither waits for others nor exchanges messages with them goes to any loop. Streams that come one after
//! another stay together, and so do all scripts, which may send each other messages. Every instance has generators of its own,
//! so that it asks for the same requests in whichever loop it is.

use std::collections::BTreeMap;
use std::ops::Range;

use super::stream::{Source, Stream};

/// Which part has which instances.
pub(super) struct Shares {
    parts: usize,
    /// How many instances of each stream each part has, in the order of their numbers.
    counts: Vec<Vec<u64>>,
}

impl Shares {
    /// Everything in one part.
    pub fn one(streams: &[Stream]) -> Self {
        Self { parts: 1, counts: streams.iter().map(|stream| vec![stream.instances]).collect() }
    }

    /// As many parts as are wanted and can have something to do, about even in requests at a time. What runs ahead goes to the
    /// first of them.
    pub fn new(streams: &[Stream], runs_ahead: &[bool], wanted: usize) -> Self {
        if wanted == 1 {
            return Self::one(streams);
        }
        let groups = groups(streams, runs_ahead);
        let is_alone = |number: usize| groups[number] == Group::Alone;
        let alone = || (0..streams.len()).filter(|&number| is_alone(number));
        let mut weights = BTreeMap::<_, u64>::new();
        for (number, stream) in streams.iter().enumerate().filter(|(number, _)| !is_alone(*number)) {
            let weight = weights.entry(groups[number]).or_default();
            *weight = weight.saturating_add(weight_of(stream).saturating_mul(stream.instances));
        }
        let units = alone().fold(weights.len() as u64, |sum, number| sum.saturating_add(streams[number].instances));
        let parts = (wanted as u64).min(units).max(1) as usize;
        let mut loads = vec![0_u64; parts];
        let mut of_group = BTreeMap::new();
        let mut heaviest_first: Vec<_> = weights.into_iter().collect();
        heaviest_first.sort_by_key(|&(group, weight)| (group != Group::Ahead, std::cmp::Reverse(weight), group));
        for (group, weight) in heaviest_first {
            let part = lightest(&loads);
            loads[part] = loads[part].saturating_add(weight);
            of_group.insert(group, part);
        }
        let place = |number: usize| {
            let (stream, mut counts) = (&streams[number], vec![0; parts]);
            match of_group.get(&groups[number]) {
                Some(&part) => counts[part] = stream.instances,
                None => deal(stream.instances, weight_of(stream), &mut loads, &mut counts),
            }
            counts
        };
        Self { parts, counts: (0..streams.len()).map(place).collect() }
    }

    pub fn parts(&self) -> usize {
        self.parts
    }

    /// How many instances of a stream a part has.
    pub fn count(&self, stream: usize, part: usize) -> u64 {
        self.counts[stream][part]
    }

    /// The numbers of the instances of a stream that a part has.
    pub fn instances(&self, stream: usize, part: usize) -> Range<u32> {
        let first: u64 = self.counts[stream][..part].iter().sum();
        first as u32..(first + self.count(stream, part)) as u32
    }
}

/// What stays together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// What runs ahead of the first loop.
    Ahead,
    /// Scripts.
    Scripts,
    /// The streams linked by `after`: that of the first of them.
    Linked(usize),
    /// Nothing: its instances do not depend on each other.
    Alone,
}

fn groups(streams: &[Stream], runs_ahead: &[bool]) -> Vec<Group> {
    let mut above: Vec<usize> = (0..streams.len()).collect();
    let mut is_linked = vec![false; streams.len()];
    for (number, stream) in streams.iter().enumerate() {
        for &before in &stream.after {
            let (one, other) = (first_of(&mut above, number), first_of(&mut above, before));
            above[one.max(other)] = one.min(other);
            (is_linked[number], is_linked[before]) = (true, true);
        }
    }
    let group = |number: usize| match &streams[number].kind {
        _ if runs_ahead[number] => Group::Ahead,
        Source::Script(_) => Group::Scripts,
        _ if is_linked[number] => Group::Linked(first_of(&mut above, number)),
        _ => Group::Alone,
    };
    (0..streams.len()).map(group).collect()
}

/// The first stream that this one is linked with. Shortens the way to it.
fn first_of(above: &mut [usize], mut number: usize) -> usize {
    while above[number] != number {
        above[number] = above[above[number]];
        number = above[number];
    }
    number
}

/// What an instance adds to its loop.
fn weight_of(stream: &Stream) -> u64 {
    stream.closed_at_once().max(1)
}

fn lightest(loads: &[u64]) -> usize {
    (0..loads.len()).min_by_key(|&part| loads[part]).unwrap_or(0)
}

/// Deals instances of this weight to the lightest parts.
fn deal(mut instances: u64, weight: u64, loads: &mut [u64], counts: &mut [u64]) {
    while instances > 0 {
        let part = lightest(loads);
        let heavier = loads.iter().filter(|&&load| load > loads[part]).min();
        // Up to the next heavier part, as many as there are lightest ones; at the end one each.
        let room = heavier.map_or(instances / loads.len() as u64, |load| (load - loads[part]).div_ceil(weight));
        let here = room.clamp(1, instances);
        counts[part] += here;
        loads[part] = loads[part].saturating_add(here.saturating_mul(weight));
        instances -= here;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iosonar_trace::{DeviceId, Nanos, Outcome, Sectors};

    use crate::filament::{Runtime, SubmittedRequest};
    use crate::program::{Layout, Part, Program, Settings};

    fn parts(text: &str, parts: usize) -> (Vec<Part>, Option<Runtime>) {
        let program = Program::parse("p.toml", &format!("name = \"p\"\nabout = \"A test\"\n{text}")).unwrap();
        program.place(&Settings::new(Layout::Together(Sectors(1 << 25)))).unwrap().parts(parts).unwrap()
    }

    fn stream(name: &str, keys: &str) -> String {
        format!("[[stream]]\nname = \"{name}\"\nop = \"read\"\nclosed = true\nrequests = 50\n{keys}\n")
    }

    fn sizes(all: &[Part]) -> Vec<(usize, u64)> {
        all.iter().map(|part| (part.runtime.filaments(), part.closed_at_once)).collect()
    }

    /// All requests, each completed after a time that depends on it and on the part.
    fn run(parts: Vec<Part>) -> Vec<SubmittedRequest> {
        let mut all = Vec::new();
        for (number, Part { mut runtime, .. }) in parts.into_iter().enumerate() {
            let mut open = BTreeSet::new();
            let mut tickets = Vec::new();
            loop {
                let next = open.first().map(|&(at, _)| at);
                if let Some(at) = runtime.next_at().filter(|&at| next.is_none_or(|next| at <= next)) {
                    let Some(asked) = runtime.next_due(at) else { continue };
                    open.insert((
                        asked.at + Nanos(1000 + number as i64 * 77 + asked.spec.sector.0 as i64 % 91),
                        tickets.len(),
                    ));
                    tickets.push(asked.ticket);
                    all.push(asked);
                } else if let Some((at, index)) = open.pop_first() {
                    if let Some(ticket) = tickets[index] {
                        runtime.completed(ticket, Outcome::Ok, 4096, at);
                    }
                } else {
                    break;
                }
            }
        }
        all
    }

    #[test]
    fn instances_are_dealt_evenly_and_linked_ones_stay_together() {
        let text = stream("a", "instances = 5\ndepth = 4") + &stream("b", "") + &stream("c", "") + &stream("d", "");
        assert_eq!(sizes(&parts(&text, 1).0), [(8, 23)]);
        assert_eq!(sizes(&parts(&text, 2).0), [(3, 12), (5, 11)]);
        assert_eq!(parts(&text, 64).0.len(), 8, "no more than there are instances");
        let text =
            stream("a", "instances = 3") + &stream("b", "after = \"a\"\ninstances = 2") + &stream("c", "instances = 6");
        assert_eq!(sizes(&parts(&text, 2).0), [(6, 6), (5, 5)]);
        assert_eq!(parts(&(stream("a", "") + &stream("b", "after = \"a\"")), 8).0.len(), 1);
    }

    #[test]
    fn scripts_that_run_ahead_are_beside_the_first_part() {
        let code = "[[stream]]\nname = \"s\"\ncode = \"function start() read(0, 4096) end\"\n";
        let (both, ahead) = parts(&(code.to_owned() + &stream("a", "instances = 3")), 2);
        assert_eq!((sizes(&both), ahead.map(|ahead| ahead.filaments())), (vec![(1, 1), (2, 2)], Some(1)));
    }

    #[test]
    fn an_instance_asks_for_the_same_in_any_number_of_parts() {
        let text = stream("a", "instances = 5\nown_region = true") + &stream("b", "positions = \"sequential\"");
        let asked = |count| {
            let all = run(parts(&text, count).0);
            let numbers: BTreeSet<_> = all.iter().map(|asked| asked.request).collect();
            assert_eq!(numbers.len(), 300, "each request has a number of its own");
            assert!(all.iter().all(|asked| asked.spec.device == DeviceId(0)));
            let mut places: Vec<_> = all.iter().map(|asked| (asked.stream, asked.spec.sector, asked.spec.op)).collect();
            places.sort_by_key(|place| (place.0, place.1));
            places
        };
        let one = asked(1);
        assert!([2, 3, 6].into_iter().all(|count| asked(count) == one));
    }
}
