"""Deploy releases: resolve the desired jobs, make and apply a plan, and record the result in a state file."""
