//! Each transform beside a slow and obvious model, on random loads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;

proptest! {
    #[test]
    fn select_keeps_a_window_of_time(requests in requests(100, 1000), from in 0_i64..60, length in 1_i64..60) {
        let (start, end) = (from * SECOND, (from + length) * SECOND);
        let model: Vec<Request> = requests.iter().filter(|r| (start..end).contains(&r.at.0)).copied().collect();
        let to = from + length;
        prop_assert_eq!(edited(&format!("select from={from} to={to}"), &requests), model.clone());
        let rebased: Vec<Request> = model.iter().map(|r| Request { at: Nanos(r.at.0 - start), ..*r }).collect();
        prop_assert_eq!(edited(&format!("select from={from}s to={to}s base=zero"), &requests), rebased);
    }

    #[test]
    fn clip_keeps_the_sectors_of_a_region(requests in requests(50, 300), from in 0_u64..200, length in 1_u64..200) {
        let to = from + length;
        let sectors = |r: &Request| (r.sector.0..r.end().0).filter(|s| (from..to).contains(s)).collect::<Vec<_>>();
        let model: Vec<_> = requests.iter().filter(|r| r.sectors.0 == 0 || !sectors(r).is_empty()).collect();
        let cut = edited(&format!("clip from={from}s to={to}s"), &requests);
        prop_assert_eq!(model.len(), cut.len());
        for (model, cut) in model.iter().zip(&cut) {
            prop_assert_eq!(sectors(model), (cut.sector.0..cut.end().0).collect::<Vec<_>>());
            prop_assert_eq!((model.at, model.op), (cut.at, cut.op));
        }
        let moved = edited(&format!("clip from={from}s to={to}s base=zero"), &requests);
        for (cut, moved) in cut.iter().zip(&moved).filter(|(cut, _)| cut.sectors.0 > 0) {
            prop_assert_eq!(cut.sector.0 - from, moved.sector.0);
        }
        let uncut = edited(&format!("clip from={from}s to={to}s crossing=drop"), &requests);
        let inside = |r: &&Request| r.sectors.0 == 0 || r.sector.0 >= from && r.end().0 <= to;
        prop_assert_eq!(uncut, requests.iter().filter(inside).copied().collect::<Vec<_>>());
    }

    #[test]
    fn slip_shifts_each_nth_request_and_all_behind_it(requests in requests(100, 1000), every in 1_usize..20, increase in 0_u64..100) {
        let mut model = requests.clone();
        let mut offset = 0;
        let mut counted = 0;
        for request in &mut model {
            counted += 1;
            if counted >= every {
                offset += increase;
                counted = 0;
            }
            *request = placed(request, request.sector.0 + offset);
        }
        prop_assert_eq!(edited(&format!("slip every={every} increase={increase}s"), &requests), model);
    }

    #[test]
    fn spread_follows_its_formula(requests in requests(100, 1 << 40), quarters in 1_u32..40, align in 1_u64..64, offset in 0_u64..9) {
        let factor = f64::from(quarters) / 4.0;
        let spread = edited(&format!("spread factor={factor} align={align}s offset={offset}s"), &requests);
        for (before, after) in requests.iter().zip(&spread) {
            let s = u128::from(before.sector.0);
            // ⌊s·f / align⌋·align + s mod align + offset, in uncut numbers.
            let model = s * u128::from(quarters) / (4 * u128::from(align)) * u128::from(align) + s % u128::from(align);
            let model = if before.sectors.0 == 0 { s } else { model + u128::from(offset) };
            prop_assert_eq!(u128::from(after.sector.0), model);
            prop_assert_eq!(Request { sector: before.sector, ..*after }, *before);
        }
    }

    #[test]
    fn resize_stays_within_bounds(requests in requests(100, 1000), quarters in 1_u64..40, min in 0_u64..40, more in 1_u64..40) {
        let (factor, max) = (quarters as f64 / 4.0, min + more);
        let resized = edited(&format!("resize factor={factor} min={min}s max={max}s"), &requests);
        for (before, after) in requests.iter().zip(&resized) {
            let model = match before.sectors.0 {
                0 => 0,
                sectors => (sectors * quarters / 4).max(min).max(1).min(max),
            };
            prop_assert_eq!(*after, Request { sectors: Sectors(model), ..*before });
        }
    }

    #[test]
    fn subst_replaces_one_operation(requests in requests(100, 1000), from in 0_usize..5, to in 0_usize..5) {
        let (from, to) = (Op::ALL[from], Op::ALL[to]);
        prop_assume!(from != Op::Flush || to == Op::Flush);
        let replaced = edited(&format!("subst from={} to={}", from.name(), to.name()), &requests);
        for (before, after) in requests.iter().zip(&replaced) {
            prop_assert_eq!(after.op, if before.op == from { to } else { before.op });
            let keeps_flags = before.op != from || from == to;
            prop_assert!(keeps_flags || !after.flags.has(Flags::READAHEAD));
            prop_assert!(!keeps_flags || after == before);
        }
    }

    #[test]
    fn reverse_keeps_times_and_reverses_the_rest(requests in requests(100, 1000)) {
        let times = requests.iter().map(|r| r.at);
        let model: Vec<Request> = requests.iter().rev().zip(times).map(|(r, at)| Request { at, ..*r }).collect();
        prop_assert_eq!(edited("reverse", &requests), model);
        prop_assert_eq!(edited("reverse | reverse", &requests), requests);
    }

    #[test]
    fn scale_multiplies_times(requests in requests(100, 1000), halves in 1_i64..20) {
        let model: Vec<_> = requests.iter().map(|r| Request { at: Nanos(r.at.0 * halves / 2), ..*r }).collect();
        prop_assert_eq!(edited(&format!("scale time={}", halves as f64 / 2.0), &requests), model);
    }

    #[test]
    fn ramped_changes_times_only(requests in requests(100, 1000), slope in 1_u32..20) {
        let ramped = edited(&format!("ramped slope={slope}"), &requests);
        for (before, after) in requests.iter().zip(&ramped) {
            prop_assert_eq!(Request { at: before.at, ..*after }, *before);
        }
    }

    #[test]
    fn repeat_is_the_load_again(requests in requests(50, 1000), times in 1_u64..5, offset in 0_u64..100) {
        let period = 70 * SECOND;
        let mut model = Vec::new();
        for iteration in 0..times {
            model.extend(requests.iter().map(|r| Request {
                at: Nanos(r.at.0 + iteration as i64 * period),
                ..placed(r, r.sector.0 + iteration * offset)
            }));
        }
        let pipeline = format!("repeat times={times} offset={offset}s period=70s");
        prop_assert_eq!(edited(&pipeline, &requests), model.clone());
        // Forever, cut off where the same number of iterations ends: the same.
        let forever = format!("repeat offset={offset}s period=70s | select to={}", 70 * times);
        if !requests.is_empty() {
            prop_assert_eq!(edited(&forever, &requests), model);
        }
    }

    #[test]
    fn sample_by_region_keeps_all_or_nothing(requests in requests(200, 10_000), seed: u32) {
        let kept = edited(&format!("sample share=50% by=region region=1000s seed={seed}"), &requests);
        let region = |r: &Request| (r.device, r.sector.0 / 1000);
        let at_places = |requests: &[Request]| requests.iter().filter(|r| r.sectors.0 > 0).copied().collect::<Vec<_>>();
        let (kept, given) = (at_places(&kept), at_places(&requests));
        let regions: BTreeSet<_> = kept.iter().map(region).collect();
        prop_assert_eq!(kept, given.into_iter().filter(|r| regions.contains(&region(r))).collect::<Vec<_>>());
        prop_assert_eq!(edited("sample share=1", &requests), requests.clone());
        prop_assert_eq!(edited("sample share=0", &requests), []);
    }

    #[test]
    fn derived_sorts_snippets_by_their_rate(requests in requests(200, 1000), outputs in 1_usize..4) {
        // The model: collect, drop the last, sort, deal.
        let mut snippets: BTreeMap<i64, Vec<Request>> = BTreeMap::new();
        for request in &requests {
            snippets.entry(request.at.0 / (10 * SECOND)).or_default().push(*request);
        }
        snippets.pop_last();
        prop_assume!(!snippets.is_empty());
        let mut snippets: Vec<(i64, Vec<Request>)> = snippets.into_iter().collect();
        snippets.sort_by_key(|(_, requests)| std::cmp::Reverse(requests.len()));
        for output in 1..=outputs {
            let mut model = Vec::new();
            for (place, (index, snippet)) in snippets.iter().skip(output - 1).step_by(outputs).enumerate() {
                let shift = (place as i64 - index) * 10 * SECOND;
                model.extend(snippet.iter().map(|r| Request {
                    at: Nanos(r.at.0 + shift), latency: None, queued: None, ..*r
                }));
            }
            prop_assert_eq!(edited(&format!("derived snippet=10 outputs={outputs} output={output}"), &requests), model);
        }
    }

    #[test]
    fn remap_joins_renames_and_drops(requests in requests(50, 1000)) {
        let joined = parse("remap map=sda:disk,1:disk").unwrap().apply(load(requests.clone())).unwrap();
        let (rows, metadata) = all(joined);
        prop_assert_eq!(metadata.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["disk"]);
        let on_first = |r: &Request| Request { device: DeviceId(0), ..*r };
        prop_assert_eq!(rows, requests.iter().map(on_first).collect::<Vec<_>>());
        let second = requests.iter().filter(|r| r.device.0 == 1);
        prop_assert_eq!(edited("remap map=sdb others=drop", &requests), second.map(on_first).collect::<Vec<_>>());
    }

    #[test]
    fn merge_is_sorting_by_time(one in requests(50, 1000), other in requests(50, 1000), offset in -30_i64..30) {
        let directory = tempfile::tempdir().unwrap();
        let file = written(&directory, "other.load.parquet", &other);
        let merged = edited(&format!("merge with={} offset={offset}", file.display()), &one);
        let moved = other.iter().map(|r| Request {
            at: Nanos(r.at.0 + offset * SECOND), device: DeviceId(r.device.0 + 2), ..*r
        });
        let mut model: Vec<Request> = one.iter().copied().chain(moved).collect();
        model.sort_by_key(|r| r.at);
        prop_assert_eq!(merged, model);
    }

    #[test]
    fn adjacent_regions_never_touch(one in requests(50, 1000), other in requests(50, 500)) {
        let directory = tempfile::tempdir().unwrap();
        let file = written(&directory, "other.load.parquet", &other);
        let together = edited(&format!("adjacent with={}", file.display()), &one);
        prop_assert_eq!(together.len(), one.len() + other.len());
        // Regions in the order of load and device, each beginning at a multiple of 8 behind the last.
        let mut start = 0;
        let mut model = Vec::new();
        for (requests, device) in [(&one, 0), (&one, 1), (&other, 0), (&other, 1)] {
            let own: Vec<&Request> = requests.iter().filter(|r| r.device.0 == device).collect();
            model.extend(own.iter().map(|r| (r.at, placed(r, start + r.sector.0).sector.0, r.sectors, r.op)));
            start += own.iter().filter(|r| !r.is_empty()).map(|r| r.end().0).max().unwrap_or(0).next_multiple_of(8);
        }
        let mut got: Vec<_> = together.iter().map(|r| (r.at, r.sector.0, r.sectors, r.op)).collect();
        model.sort();
        got.sort();
        prop_assert_eq!(got, model);
    }

    #[test]
    fn anonymise_permutes_regions_and_processes(requests in requests(100, 5000)) {
        let hidden = edited("anonymise region=100s key=secret", &requests);
        prop_assert_eq!(edited("anonymise region=100s key=secret", &requests), hidden.clone());
        // The model: cut at borders, then map regions and processes one to one.
        let mut cut = Vec::new();
        for request in &requests {
            let mut rest = *request;
            while rest.sector.0 % 100 + rest.sectors.0 > 100 {
                let room = 100 - rest.sector.0 % 100;
                cut.push(Request { sectors: Sectors(room), ..rest });
                rest = Request { sector: rest.sector + Sectors(room), sectors: Sectors(rest.sectors.0 - room), ..rest };
            }
            cut.push(rest);
        }
        prop_assert_eq!(cut.len(), hidden.len());
        let (mut regions, mut pids, mut comms) = (Pairs::default(), Pairs::default(), Pairs::default());
        for (before, after) in cut.iter().zip(&hidden) {
            prop_assert_eq!((before.at, before.sectors, before.op, before.device), (after.at, after.sectors, after.op, after.device));
            if before.sectors.0 == 0 {
                prop_assert_eq!(after.sector.0, 0);
            } else {
                prop_assert_eq!(before.sector.0 % 100, after.sector.0 % 100);
                regions.see((before.device, before.sector.0 / 100), (after.device, after.sector.0 / 100));
            }
            comms.see(before.comm, after.comm);
            pids.see(before.pid, after.pid);
        }
    }
}

/// The request at that sector, if it is at any.
fn placed(request: &Request, sector: u64) -> Request {
    Request { sector: if request.sectors.0 == 0 { request.sector } else { Sector(sector) }, ..*request }
}

/// Checks that a map is one to one.
struct Pairs<T> {
    there: HashMap<T, T>,
    back: HashMap<T, T>,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self { there: HashMap::new(), back: HashMap::new() }
    }
}

impl<T: std::hash::Hash + Eq + Copy + std::fmt::Debug> Pairs<T> {
    fn see(&mut self, before: T, after: T) {
        assert_eq!(*self.there.entry(before).or_insert(after), after, "{before:?} became two");
        assert_eq!(*self.back.entry(after).or_insert(before), before, "two became {after:?}");
    }
}
