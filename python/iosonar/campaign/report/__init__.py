"""The report of a campaign: which factor made a difference, by how much, and how sure that is."""

from iosonar.campaign.report.page import run_report

__all__ = ["run_report"]
