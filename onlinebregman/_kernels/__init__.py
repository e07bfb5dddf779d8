"""The compiled part: geometries (mirror maps row by row), losses, and the one loop over rows."""
