//! Calls that copy between two descriptors in the kernel.

use super::super::State;
use super::super::step::Step;
use super::io::end_of;
use crate::{CallKind, Resource, Skip};

impl State {
    pub(super) fn copy(&mut self, step: &mut Step) {
        let call = step.call;
        if matches!(call.kind, CallKind::Tee | CallKind::Vmsplice) {
            step.skip(Skip::NotAFile);
            return;
        }
        // The description of `fd` comes first, whichever it is.
        let first = self.descriptor(step, call.fd, None);
        let second = self.descriptor(step, call.fd2, None);
        (step.resolved.description, step.resolved.description2) = (first, second);
        let (input, output) = if call.kind == CallKind::Sendfile { (second, first) } else { (first, second) };
        let bytes = step.result().unwrap_or(0);
        if step.resolved.skip == Some(Skip::NotAFile) && bytes > 0 && (self.is_file(input) != self.is_file(output)) {
            // Beside a pipe or socket: the file is read, or written.
            step.resolved.skip = None;
            for side in [&mut step.resolved.description, &mut step.resolved.description2] {
                *side = side.filter(|id| self.descriptions.get(*id).object.is_some());
            }
        }
        let stated = call.offset.and_then(|offset| u64::try_from(offset).ok());
        let stated_of_output = call.offset2.and_then(|offset| u64::try_from(offset).ok());
        // Taken before the input moves: both may be the same description.
        let own = output.and_then(|id| self.descriptions.get(id).position);
        if let Some(id) = input
            && let Some(object) = self.descriptions.get(id).object
        {
            Self::transfers(step, id);
            let position = stated.or(self.descriptions.get(id).position);
            step.resolved.position = position;
            if stated.is_none() {
                step.modifies(Resource::Position(id));
            }
            step.uses(Resource::Size(object));
            step.uses(Resource::Object(object));
            if let Some(position) = position {
                if bytes > 0 {
                    self.show_read(object, position, bytes, None);
                }
                if stated.is_none() {
                    self.descriptions.get_mut(id).position = Some(end_of(position, bytes));
                }
            }
        }
        if let Some(id) = output
            && let Some(object) = self.descriptions.get(id).object
        {
            Self::transfers(step, id);
            let stated = stated_of_output;
            let is_appending = self.descriptions.get(id).has_flag(libc::O_APPEND);
            let position = if is_appending { self.size(object) } else { stated.or(own) };
            if stated.is_none() {
                step.modifies(Resource::Position(id));
            }
            step.modifies(Resource::Object(object));
            let end = position.map(|position| end_of(position, bytes));
            if bytes > 0 {
                self.extend(step, object, end, bytes);
            }
            if stated.is_none() && bytes > 0 {
                self.descriptions.get_mut(id).position = end;
            }
        }
    }

    fn is_file(&self, id: Option<crate::DescriptionId>) -> bool {
        id.is_some_and(|id| self.descriptions.get(id).object.is_some() && self.descriptions.get(id).skip.is_none())
    }
}
