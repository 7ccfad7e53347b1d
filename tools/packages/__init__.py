"""Makes packages of distributions, the wheel's tags, and the lists of what is in them. Run as `python -m packages`."""
