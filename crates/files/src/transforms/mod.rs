//! Changes traces: selects calls, maps and anonymises paths.
