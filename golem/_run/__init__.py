"""How a run works inside: a pure machine that decides, and a driver that does."""
