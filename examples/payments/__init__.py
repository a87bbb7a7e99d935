"""Tools that move money, one of which can be asked afterwards whether it did."""
