"""Series of runs in a directory: one run for each point of a plan. Finished points are kept."""
