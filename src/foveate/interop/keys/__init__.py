"""The names that other libraries' checkpoints have for the parts of our models, one file per family.

A table has an entry for each module with weights or statistics: our name and theirs. A parameter that has another name
than its module and leaf has an entry of its own. Each table can be read in both directions.
"""
