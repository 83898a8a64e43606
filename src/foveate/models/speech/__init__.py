"""Models that read sounds, one page per family.

Those that write text read spectrograms `source` (B, S, F) with their `source_lengths`, padded by zeros. Classifiers
read a spectrogram as an image `pixels` (B, 1, F, S) of one channel, so models of images can classify sounds too.
"""
