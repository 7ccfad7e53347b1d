"""Figures as data, and the modules that draw them. A new drawer needs only `model`."""
