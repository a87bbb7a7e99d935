"""What a drift looks like to people."""
