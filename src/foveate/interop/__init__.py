"""Models of other libraries: opening their folders, and the names of their weights."""
