"""What simple rules and counting reach, to measure a model against."""
