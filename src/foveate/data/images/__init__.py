"""Images as examples: decoded, changed at random, and made into tensors, with what is said of them."""
