"""Reports: diagrams of a study as files, in the order of their interest."""
