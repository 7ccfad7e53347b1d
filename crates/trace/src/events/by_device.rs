//! Which events there are of which device. A load is taken from one kind of them; a device without that kind is not in it,
//! as one that is asked for bios and has no requests (zram, device mapper), where requests are taken from their issue.

use crate::model::metadata::Metadata;
use crate::model::request::DeviceId;
use crate::text::human;

use super::{Action, Event};

/// How many devices are named.
const NAMED: usize = 4;

/// For each device, how many events of each of [`Action::CHOICES`].
#[derive(Default)]
pub struct ByDevice(Vec<[u64; Action::CHOICES.len()]>);

impl ByDevice {
    /// An event was read.
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

    /// Says which devices have no event of the kind that requests were taken from, and which kind they have.
    pub fn tell(&mut self, taken: Action, about: &mut Metadata) {
        let counts = std::mem::take(&mut self.0);
        let left_out: Vec<(usize, &[u64; 4])> = counts
            .iter()
            .enumerate()
            .filter(|(_, of)| of[taken as usize] == 0 && of.iter().any(|&count| count > 0))
            .collect();
        let mut all = [0; Action::CHOICES.len()];
        for (_, of) in &left_out {
            all.iter_mut().zip(of.iter()).for_each(|(all, count)| *all += count);
        }
        // The first of equals: the earliest in a request's life.
        let Some(instead) = Action::CHOICES
            .into_iter()
            .rev()
            .max_by_key(|&action| all[action as usize])
            .filter(|_| !left_out.is_empty())
        else {
            return;
        };
        let named = left_out.iter().take(NAMED).map(|(device, of)| {
            let name = about.devices.get(*device).map_or("?", |device| device.name.as_str());
            format!("{name} ({})", shown(of))
        });
        let mut named = named.collect::<Vec<_>>().join(", ");
        if left_out.len() > NAMED {
            named = format!("{named} and {} more", human::count((left_out.len() - NAMED) as u64));
        }
        let is_everything = left_out.len() == counts.iter().filter(|of| of.iter().any(|&count| count > 0)).count();
        let what = if is_everything { "no event is of the kind" } else { "some devices have no event of the kind" };
        let (taken, instead) = (taken.letter(), instead.letter());
        about.notice(format!(
            "{what} {taken}, and nothing is taken from them: {named}; --action {instead} takes requests from their events \
             {instead}"
        ));
    }
}

/// `17 Q, 3 D`.
fn shown(counts: &[u64; Action::CHOICES.len()]) -> String {
    let counted = Action::CHOICES.into_iter().filter(|&action| counts[action as usize] > 0);
    counted.map(|action| format!("{} {}", counts[action as usize], action.letter())).collect::<Vec<_>>().join(", ")
}
