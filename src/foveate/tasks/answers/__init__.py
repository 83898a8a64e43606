"""What models answer: how an answer is found, shown and drawn."""
