"""The operations by family, with one public function for each."""
