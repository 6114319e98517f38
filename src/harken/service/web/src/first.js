// Runs before anything is drawn: the first words (first_words.py) are there before the page's script is.
import { useStoredTheme } from "./theme.js";

useStoredTheme();
