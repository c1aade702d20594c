"""From a picture and words to ranked documents with their shares."""
