//! The uses of a resource since it was modified last.

use super::edges::Lane;

/// A call that uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub number: u64,
    pub lane: Lane,
}

/// More than these in a list are not searched for the lane of a new use.
const SEARCHED: usize = 8;

/// The last use in each lane, and some earlier ones. Most resources have uses in one lane only: these need no allocation.
#[derive(Default)]
pub(super) struct Users {
    first: Option<User>,
    more: Vec<User>,
}

impl Users {
    /// Adds a use; the number is above all others. Returns whether an earlier use of its lane is known.
    pub(super) fn push(&mut self, user: User, stamps: &mut Stamps) -> bool {
        match &mut self.first {
            None => {
                self.first = Some(user);
                return false;
            }
            Some(first) if first.lane == user.lane => {
                *first = user;
                return true;
            }
            Some(_) => {}
        }
        let recent = self.more.len().saturating_sub(SEARCHED);
        if let Some(same) = self.more[recent..].iter_mut().find(|other| other.lane == user.lane) {
            *same = user;
            return true;
        }
        if self.more.len() == self.more.capacity() && self.more.len() > SEARCHED {
            self.keep_latest(stamps);
        }
        self.more.push(user);
        false
    }

    /// Keeps the last use of each lane. If these are many, the list grows, so that each use is looked at a bounded number of
    /// times on average.
    fn keep_latest(&mut self, stamps: &mut Stamps) {
        stamps.clear();
        self.more.sort_unstable_by_key(|user| std::cmp::Reverse(user.number));
        self.more.retain(|user| stamps.mark(user.lane));
        self.more.reverse();
        if self.more.len() > self.more.capacity() / 2 {
            self.more.reserve(self.more.capacity());
        }
    }

    /// All of them, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = User> {
        self.first.into_iter().chain(self.more.iter().copied())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn clear(&mut self) {
        self.first = None;
        self.more.clear();
    }
}

/// Marks lanes.
#[derive(Default)]
pub(super) struct Stamps {
    epoch: u32,
    marked: Vec<u32>,
}

impl Stamps {
    fn clear(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.marked.fill(0);
            self.epoch = 1;
        }
    }

    /// Whether it was unmarked.
    fn mark(&mut self, lane: Lane) -> bool {
        let index = lane.0 as usize;
        if index >= self.marked.len() {
            self.marked.resize(index + 1, 0);
        }
        std::mem::replace(&mut self.marked[index], self.epoch) != self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_list_keeps_the_last_use_of_each_lane() {
        let mut users = Users::default();
        let mut stamps = Stamps::default();
        let mut last = [0; 50];
        for number in 0..100_000u64 {
            let lane = (number * number % 50) as u32;
            users.push(User { number, lane: Lane(lane) }, &mut stamps);
            last[lane as usize] = number;
        }
        assert!(users.more.len() <= 200);
        for (lane, number) in last.into_iter().enumerate() {
            let latest = users.iter().filter(|user| user.lane.0 as usize == lane).map(|user| user.number).max();
            assert_eq!(latest.unwrap_or(0), number);
        }
    }
}
