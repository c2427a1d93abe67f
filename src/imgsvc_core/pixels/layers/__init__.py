"""Draw layers: a module for each kind, and one that lays them over the picture."""
