"""The loop over rows: learners, the equation of a step, and how a call is undone."""
