"""The report of a campaign: which factor made a difference, by how much, and how sure that is."""
