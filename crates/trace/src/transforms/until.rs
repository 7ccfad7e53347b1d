//! A load that can be stopped between two requests of its input: after a transform that drops everything, its `next`
//! might otherwise never return.

use std::sync::Arc;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::metadata::Metadata;
use crate::model::request::Request;

use super::Rows;

/// Returns true once the load must end.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// Ends the load as soon as `is_over` returns true. It is called before each request.
pub fn until(rows: Rows, is_over: &IsOver) -> Rows {
    Box::new(Until { rows, is_over: Arc::clone(is_over) })
}

struct Until {
    rows: Rows,
    is_over: IsOver,
}

impl Reader<Request> for Until {
    fn next(&mut self) -> Result<Option<Request>> {
        if (self.is_over)() { Ok(None) } else { self.rows.next() }
    }

    fn metadata(&self) -> &Metadata {
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
