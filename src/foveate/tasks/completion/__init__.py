"""Language models of public folders in use: they go on from texts, chat, choose by examples, and are measured."""
