"""What is found in requests: one file for each finding."""
