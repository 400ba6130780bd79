"""The one way to search: what is asked, what it is prepared with, the run, and the record of it."""
