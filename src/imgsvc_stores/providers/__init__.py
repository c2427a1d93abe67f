"""One module for each provider: how its sessions are opened, and how they write."""
