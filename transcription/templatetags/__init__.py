"""What templates need."""
