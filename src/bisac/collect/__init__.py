"""How experience is gathered and learned from: the one seam between learning and the environments."""
