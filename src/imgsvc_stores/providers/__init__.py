"""One module for each provider, which opens its sessions and writes with them."""
