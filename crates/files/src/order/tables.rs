//! What the tables of the policies have in common.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::{Resolved, Skip};

/// Keys are numbers that `state` assigns, so no trace can choose them to collide.
pub(super) type Map<K, V> = HashMap<K, V, FixedState>;

/// Tables below this number of entries are not searched for entries to forget.
pub(super) const FEWEST_TO_SWEEP: usize = 4096;

/// Whether the descriptions that a call makes take part in `fs` and `resource`: pipes and sockets do not.
pub(super) fn makes_descriptions(resolved: &Resolved) -> bool {
    matches!(resolved.skip, None | Some(Skip::Bookkeeping))
}
