//! Numbers of events by device and action. A load is taken from the events of one action; it lacks devices that have none
//! of them. For example, devices that handle bios and have no requests (zram, device mapper) have no issues.

use crate::model::metadata::Metadata;
use crate::model::request::DeviceId;
use crate::text::human;

use super::{Action, Event};

/// Most devices that a warning names.
const MAX_NAMED: usize = 4;

/// For each device, the number of events of each of [`Action::CHOICES`].
#[derive(Default)]
pub struct ActionCounts(Vec<[u64; Action::CHOICES.len()]>);

impl ActionCounts {
    /// Counts an event.
    pub fn count(&mut self, event: &Event) {
        let (DeviceId(device), action) = (event.device, event.action as usize);
        if action >= Action::CHOICES.len() {
            return;
        }
        let device = usize::from(device);
        if self.0.len() <= device {
            self.0.resize(device + 1, [0; Action::CHOICES.len()]);
        }
        self.0[device][action] += 1;
    }

    /// Whether a device has no events of the action that requests are taken from, but of another.
    pub fn lacks(&self, device: DeviceId, taken: Action) -> bool {
        let of = self.0.get(usize::from(device.0));
        of.is_some_and(|of| of[taken as usize] == 0 && of.iter().any(|&count| count > 0))
    }

    /// Adds a warning that names the devices without events of the action that requests are taken from, and the actions that
    /// they have.
    pub fn warning_missing(&mut self, taken: Action, metadata: &mut Metadata) {
        let counts = std::mem::take(&mut self.0);
        let missing: Vec<(usize, &[u64; 4])> = counts
            .iter()
            .enumerate()
            .filter(|(_, of)| of[taken as usize] == 0 && of.iter().any(|&count| count > 0))
            .collect();
        let mut sums = [0; Action::CHOICES.len()];
        for (_, of) in &missing {
            sums.iter_mut().zip(of.iter()).for_each(|(sum, count)| *sum += count);
        }
        // Of equal counts the earliest action in a request's life.
        let Some(instead) = Action::CHOICES
            .into_iter()
            .rev()
            .max_by_key(|&action| sums[action as usize])
            .filter(|_| !missing.is_empty())
        else {
            return;
        };
        let named = missing.iter().take(MAX_NAMED).map(|(device, of)| {
            let name = metadata.devices.get(*device).map_or("?", |device| device.name.as_str());
            format!("{name} ({})", shown(of))
        });
        let mut named = named.collect::<Vec<_>>().join(", ");
        if missing.len() > MAX_NAMED {
            named = format!("{named} and {} more", human::count((missing.len() - MAX_NAMED) as u64));
        }
        let is_everything = missing.len() == counts.iter().filter(|of| of.iter().any(|&count| count > 0)).count();
        let (taken, instead) = (taken.letter(), instead.letter());
        let what =
            if is_everything { "there are no events" } else { "some devices have no requests, as they have no events" };
        metadata
            .warning(format!("{what} {taken}: {named}; --action {instead} takes requests from the events {instead}"));
    }
}

/// `17 Q, 3 D`.
fn shown(counts: &[u64; Action::CHOICES.len()]) -> String {
    let counted = Action::CHOICES.into_iter().filter(|&action| counts[action as usize] > 0);
    counted.map(|action| format!("{} {}", counts[action as usize], action.letter())).collect::<Vec<_>>().join(", ")
}
