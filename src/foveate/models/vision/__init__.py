"""Models that read images, one page per family.

A model of these has `forward(pixels) -> Output` with one row of logits for each image, and `grid(pixels)`, its last
feature map, for what builds on it. `grid_width` is the number of channels of that map, `stride` how many pixels of the
image lie between two of its places.
"""
