"""What `benchmarks/look_families.py` is made of: small models of other libraries, and their own attention weights."""
