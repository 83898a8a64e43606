"""Translations of programs, from the catalogues that every Linux machine has."""
