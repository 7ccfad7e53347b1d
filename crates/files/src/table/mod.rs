//! The tables `NAME.calls.parquet` and `NAME.calls-run.parquet`.
