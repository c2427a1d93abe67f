"""The modules of the providers, which open their sessions and write with them."""
