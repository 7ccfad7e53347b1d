//! Rows whose reading somebody controls: they can be stopped between two rows of the input. After a transform that drops
//! everything, its `next` might otherwise never return.

use std::sync::Arc;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::row::Row;

use super::Rows;

/// Returns true once the rows must end.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// Ends the rows as soon as `is_over` returns true. It is called before each row.
pub fn until<R: Row>(rows: Rows<R>, is_over: &IsOver) -> Rows<R> {
    let is_over = Arc::clone(is_over);
    read_by(rows, move |rows| if is_over() { Ok(None) } else { rows.next() })
}

/// The same rows, each read by `next`.
pub fn read_by<R: Row, F>(rows: Rows<R>, next: F) -> Rows<R>
where
    F: FnMut(&mut Rows<R>) -> Result<Option<R>> + Send + 'static,
{
    Box::new(ReadBy { rows, next })
}

struct ReadBy<R: Row, F> {
    rows: Rows<R>,
    next: F,
}

impl<R: Row, F: FnMut(&mut Rows<R>) -> Result<Option<R>> + Send> Reader<R> for ReadBy<R, F> {
    fn next(&mut self) -> Result<Option<R>> {
        (self.next)(&mut self.rows)
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
