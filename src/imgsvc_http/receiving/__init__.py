"""Bodies of requests: reading, forms, and the processing request in them."""
