"""Questions that only a fresh process can answer: what imports, what vLLM serves, what a model's profile is.

Each module is a script that writes its answer as JSON into the file named by its first argument. They are run by path
and import nothing of this package, so that they see what `vllm serve` would see, and a crash, a log line or a half
imported library stays in their process. Not for judging the answers.
"""
