"""What sockets and REST share of the live path: captions as they come, places, connections."""
