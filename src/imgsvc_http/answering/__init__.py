"""The shapes of answers and errors."""
