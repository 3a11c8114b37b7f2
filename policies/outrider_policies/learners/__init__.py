"""What several policies share: values of bandit arms."""
