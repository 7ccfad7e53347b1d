//! Whether the load made a request late: it demands more requests at a time than the loop can issue.
//!
//! A model of a replayer that needs for each request what this loop usually needs while it is busy, and never stalls. What
//! it issues late, any such replayer issues late.

use iosonar_trace::Nanos;

use crate::ideal::LATE;

/// A busy time of so many requests gives a cost.
const WINDOW: u64 = 64;
/// The usual cost is the median of so many.
const WINDOWS: usize = 5;
/// Before the first busy time: the cost in a loop that is faster than any.
const LEAST: Nanos = Nanos(500);
/// A loop that needs longer is slow for another reason, for example that its calls are.
const MOST: Nanos = Nanos(4000);

/// The largest burst of a run that is beyond the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Scheduled time of its first request.
    pub from: Nanos,
    /// Scheduled time of its last request.
    pub to: Nanos,
    /// Its requests.
    pub requests: u64,
    /// What the loop needed for each.
    pub cost: Nanos,
    /// How late the model issued the last one.
    late: Nanos,
}

impl Burst {
    /// One for tests.
    pub fn of(from: Nanos, to: Nanos, requests: u64, cost: Nanos) -> Self {
        Self { from, to, requests, cost, late: Nanos::ZERO }
    }

    /// Requests per second that the load demands; infinite if all are due at once.
    pub fn demand(&self) -> f64 {
        (self.requests - 1) as f64 / (self.to - self.from).as_secs()
    }

    /// Requests per second that the loop reaches.
    pub fn reached(&self) -> f64 {
        1.0 / self.cost.as_secs()
    }

    /// The larger of two.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        if other.late > self.late { other } else { self }
    }
}

/// The model.
#[derive(Debug)]
pub struct Demand {
    /// When it has issued the requests so far.
    free: Nanos,
    /// When the last request was due.
    last: Nanos,
    /// Since when requests are due close together, and how many.
    since: Nanos,
    requests: u64,
    /// When the loop became busy, and the requests that it issued since.
    busy: Option<(Nanos, u64)>,
    /// The last ones, from `found - 1` backwards.
    costs: [Nanos; WINDOWS],
    found: usize,
    /// The usual cost.
    cost: Nanos,
    largest: Option<Burst>,
}

impl Default for Demand {
    fn default() -> Self {
        let (none, costs) = (Nanos(i64::MIN / 2), [Nanos::ZERO; WINDOWS]);
        Self {
            free: none,
            last: none,
            since: none,
            requests: 0,
            busy: None,
            costs,
            found: 0,
            cost: LEAST,
            largest: None,
        }
    }
}

impl Demand {
    /// The loop begins to issue `requests` at `now`.
    #[inline]
    pub fn issues(&mut self, now: Nanos, requests: usize) {
        let (from, before) = self.busy.unwrap_or((now, 0));
        let (from, before) = if before >= WINDOW {
            self.add_cost(Nanos((now - from).0 / before as i64));
            (now, 0)
        } else {
            (from, before)
        };
        self.busy = Some((from, before + requests as u64));
    }

    /// The loop has nothing to issue.
    #[inline]
    pub fn idles(&mut self) {
        self.busy = None;
    }

    fn add_cost(&mut self, cost: Nanos) {
        self.costs[self.found % WINDOWS] = cost;
        self.found += 1;
        let mut known = self.costs;
        let known = &mut known[..self.found.min(WINDOWS)];
        known.sort_unstable();
        self.cost = known[known.len() / 2].max(LEAST);
    }

    /// Adds a request that was due at `due` and is `issued` then, in the order of issue. Returns whether the load made it
    /// late: at least half of its delay is that of the model.
    #[inline]
    pub fn delays(&mut self, due: Nanos, issued: Nanos) -> bool {
        if self.free <= due {
            self.free = due;
            if due - self.last > MOST {
                (self.since, self.requests) = (due, 0);
            }
        }
        self.last = due;
        self.requests += 1;
        let late = self.free - due;
        self.free = self.free + self.cost.min(MOST);
        if late > LATE {
            let burst = Burst { from: self.since, to: due, requests: self.requests, cost: self.cost, late };
            self.largest = Some(self.largest.map_or(burst, |largest| largest.larger(burst)));
        }
        let delay = issued - due;
        late > LATE && delay > LATE && delay <= Nanos(2 * late.0)
    }

    /// The burst that is the farthest beyond the loop.
    pub fn largest(&self) -> Option<Burst> {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop that issues what is due in calls of `batch`, each request in `cost`; returns how many it blames on the load.
    fn blamed(demand: &mut Demand, due: &[i64], cost: i64, batch: usize) -> usize {
        let (mut now, mut blamed) = (i64::MIN, 0);
        for requests in due.chunks(batch) {
            if now < requests[0] {
                demand.idles();
            }
            now = now.max(requests[requests.len() - 1]);
            demand.issues(Nanos(now), requests.len());
            blamed += requests.iter().filter(|due| demand.delays(Nanos(**due), Nanos(now))).count();
            now += cost * requests.len() as i64;
        }
        blamed
    }

    fn burst(from: i64, count: i64, every: i64) -> Vec<i64> {
        (0..count).map(|i| from + i * every).collect()
    }

    #[test]
    fn a_burst_faster_than_the_loop_is_the_cause_of_its_delays() {
        let mut demand = Demand::default();
        let load = [burst(0, 96, 1_000_000), burst(1_000_000_000, 1504, 1264), burst(2_000_000_000, 96, 1000)];
        let late = blamed(&mut demand, &load.concat(), 2400, 16);
        assert!((1300..1504).contains(&late), "{late}");
        let found = demand.largest().unwrap();
        assert_eq!((found.from, found.to), (Nanos(1_000_000_000), Nanos(1_000_000_000 + 1503 * 1264)));
        assert_eq!((found.requests, found.cost), (1504, Nanos(2400)));
        assert!((found.demand() - 791_139.0).abs() < 1.0 && (found.reached() - 416_667.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_load_that_the_loop_can_issue_is_no_cause_of_delays() {
        let mut demand = Demand::default();
        assert_eq!(blamed(&mut demand, &burst(0, 10_000, 3000), 2400, 16), 0);
        // It was stopped for 3 ms, and makes up for it.
        let due = burst(50_000_000, 2000, 3000);
        assert!(due.iter().all(|due| !demand.delays(Nanos(*due), Nanos(*due + 3_000_000))));
        assert_eq!(demand.largest(), None);
    }

    #[test]
    fn slow_calls_are_not_blamed_on_the_load() {
        // 100 µs in each call, for 20,000 requests/s.
        let mut demand = Demand::default();
        assert_eq!(blamed(&mut demand, &burst(0, 1000, 50_000), 100_000, 1), 0);
    }
}
