//! Rows that can be stopped between two rows of its input: after a transform that drops everything, its `next`
//! might otherwise never return.

use std::sync::Arc;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::row::Row;

use super::Rows;

/// Returns true once the rows must end.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// Ends the rows as soon as `is_over` returns true. It is called before each row.
pub fn until<R: Row>(rows: Rows<R>, is_over: &IsOver) -> Rows<R> {
    Box::new(Until { rows, is_over: Arc::clone(is_over) })
}

struct Until<R: Row> {
    rows: Rows<R>,
    is_over: IsOver,
}

impl<R: Row> Reader<R> for Until<R> {
    fn next(&mut self) -> Result<Option<R>> {
        if (self.is_over)() { Ok(None) } else { self.rows.next() }
    }

    fn metadata(&self) -> &R::Metadata {
        self.rows.metadata()
    }

    fn has_totals(&self) -> bool {
        self.rows.has_totals()
    }

    fn has_all_devices(&self) -> bool {
        self.rows.has_all_devices()
    }

    fn progress(&self) -> Option<f64> {
        self.rows.progress()
    }
}
