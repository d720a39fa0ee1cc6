"""The data release: vectors of all documents, compared with arithmetic of others, in one file."""
