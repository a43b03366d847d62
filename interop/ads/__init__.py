"""A small aggregated discovery service: what the suite's origin serves."""
