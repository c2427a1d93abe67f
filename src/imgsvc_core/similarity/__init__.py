"""How alike two pictures look: structural similarity, and SSIMULACRA2."""
