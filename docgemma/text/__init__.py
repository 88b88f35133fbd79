"""How text is compared: characters, words, numbers and drug names. Pure, but for the word lists of `data/clinical/`."""
