"""Where backends agree: on which inputs all of them give the same bits."""
