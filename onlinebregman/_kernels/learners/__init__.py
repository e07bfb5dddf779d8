"""The learners: the loop over rows, the equation of a step, and how a call is undone."""
