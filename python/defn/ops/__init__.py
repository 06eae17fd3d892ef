"""The operations, by family: one public function for each."""
