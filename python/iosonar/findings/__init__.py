"""What the rows of a run say in plain words: findings, with their evidence, meaning, rivals, advice and confidence."""
