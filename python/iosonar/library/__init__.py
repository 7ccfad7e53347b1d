"""What `import iosonar` offers: runs as objects, for notebooks and programs. The commands use it, too."""
