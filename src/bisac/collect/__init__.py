"""How experience is gathered and learned from: the seam between learning and environments."""
