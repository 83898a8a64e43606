"""Models that join images, worlds and text, one page per family."""
