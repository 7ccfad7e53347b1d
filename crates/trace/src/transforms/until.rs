//! A load that can be stopped while nothing comes of it: behind a transform that leaves everything out, a request that
//! goes on may never come.

use std::sync::Arc;

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::metadata::Metadata;
use crate::model::request::Request;

use super::Rows;

/// Tells whether the load is to end.
pub type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// The load, at its end as soon as it is told so: `is_over` is asked before each request.
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

    fn is_surveyed(&self) -> bool {
        self.rows.is_surveyed()
    }

    fn has_all_devices(&self) -> bool {
        self.rows.has_all_devices()
    }

    fn progress(&self) -> Option<f64> {
        self.rows.progress()
    }
}
