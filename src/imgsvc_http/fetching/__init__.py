"""Getting source pictures from the network, safely."""
