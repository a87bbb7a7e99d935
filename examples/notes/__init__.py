"""An agent that reads meeting notes and mails what follows from them."""
