"""How good answers are: one file for each kind of answer."""
