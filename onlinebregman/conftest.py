"""The package is imported before its modules, of which `pytest --doctest-modules` would import the first one twice."""
