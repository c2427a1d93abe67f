"""Access to the service: keys, rates, quotas and turns."""
