//! What calls find of objects, for what the trace needs.

use super::Names;
use crate::ObjectId;
use crate::snapshot::Kind;
use crate::state::needs::First;

impl Names {
    /// An object exists that may be known only as what a link led to.
    pub fn note_found(&mut self, id: ObjectId) {
        let need = self.objects.get(&id).and_then(|object| object.need);
        if let (Some(need), Some(needs)) = (need, &mut self.needs)
            && needs.need_mut(need).first == First::Unknown
        {
            needs.note(need, First::Exists);
        }
    }

    /// A directory could not be removed since something is in it: if the trace shows nothing there, something else is.
    pub fn note_full(&mut self, id: ObjectId) {
        let object = self.objects.get(&id).filter(|object| object.entries == 0 && object.entry.is_none());
        if let (Some(need), Some(needs)) = (object.and_then(|object| object.need), &mut self.needs) {
            needs.need_mut(need).is_full = true;
        }
    }

    /// The name of an object is not that of a directory.
    pub fn note_no_directory(&mut self, id: ObjectId) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        let need = object.need.filter(|_| object.kind.is_none_or(|kind| kind == Kind::Directory));
        object.kind.get_or_insert(Kind::File);
        if let (Some(need), Some(needs)) = (need, &mut self.needs) {
            needs.note_no_directory(need);
        }
    }

    /// A call that follows symbolic links found an object, of this kind if that is known.
    pub fn note_used(&mut self, id: ObjectId, kind: Option<Kind>) {
        let object = self.objects.get(&id).and_then(|object| Some((object.need?, object.kind)));
        if let (Some((need, own)), Some(needs)) = (object, &mut self.needs) {
            needs.note_used(need);
            if let Some(kind) = kind.filter(|_| own == Some(Kind::Link)) {
                needs.learn_kind(need, kind);
            }
        }
    }

    /// Notes the kind of an object whose kind was unknown.
    pub fn learn_kind(&mut self, id: ObjectId, kind: Kind) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        if object.kind.is_none() {
            object.kind = Some(kind);
            if let (Some(need), Some(needs)) = (object.need, &mut self.needs) {
                needs.learn_kind(need, kind);
            }
        }
    }
}
