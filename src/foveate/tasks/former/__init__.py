"""The machinery of tasks that are not yet values with forms; it goes with the last of them."""
