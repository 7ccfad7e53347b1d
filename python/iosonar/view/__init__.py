"""The view: a page served on loopback whose diagrams are drawn anew for the window that a reader zooms to."""
