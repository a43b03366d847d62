"""What a test stands on: processes, peers, and bounded waiting."""
