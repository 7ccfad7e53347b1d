"""Series of runs in a folder: one run for each point of a plan. Finished points are kept; missing ones can follow."""
