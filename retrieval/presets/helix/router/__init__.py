"""Reading from a question what is to be searched: nothing at all, a kind of memory, a time, a project. Pure."""
