"""Raw tables to codes and back."""
