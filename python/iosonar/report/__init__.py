"""Reports: the diagrams of a study as files, ranked by interest."""
