"""Deploying releases: the job that is wanted, the plan, carrying it out, what was done."""
