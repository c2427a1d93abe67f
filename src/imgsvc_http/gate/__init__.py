"""Who may call, how often, and when it is their turn."""
