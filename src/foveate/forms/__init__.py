"""Forms: the kinds of value that models read and write, one module for each.

A form is a dataclass of settings. Fields marked `Learned` are filled from the training data. See `forms/form.py`.
"""
