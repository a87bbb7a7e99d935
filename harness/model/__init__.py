"""Who answers the loop: a scripted model behind the real wire format, in process or on loopback."""
