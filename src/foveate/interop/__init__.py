"""Models of other libraries: opening their folders."""
